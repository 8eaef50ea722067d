#!/usr/bin/env bash
# Compiles the ApplicationMaster, once for each content of its sources, and prints the path of the jar.
# Needs a JDK, and Maven for Hadoop's jars (testbed/hadoop/pom.xml), which are not packed into it: a
# cluster has its own. The classes run on Java 8 and later, and on Hadoop 3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

hash=$(find src build.sh ../../src/muster/launch/yarn/programs.h -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-12)
folder=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/yarn-$hash
mkdir -p "$folder"
exec 9>"$folder.lock"
flock 9  # whoever waited here finds it done
if [[ ! -e "$folder/complete" ]]; then
  for program in javac jar; do
    if ! command -v $program >/dev/null; then
      echo "The ApplicationMaster needs $program to be built: install openjdk-17-jdk-headless." >&2
      exit 1
    fi
  done
  jars=$(../../testbed/maven_jars.sh ../../testbed/hadoop/pom.xml)
  rm -rf "$folder/classes"
  javac --release 8 -nowarn -Xlint:-options -classpath "$jars/*" -d "$folder/classes" \
    src/muster/yarn/*.java >&2 9>&-
  # As src/muster/launch/yarn/programs.h says it; an entry's name is found in the jar's bytes.
  version=$(sed -n 's/^inline constexpr int kMasterVersion = \([0-9]*\);/\1/p' ../../src/muster/launch/yarn/programs.h)
  mkdir -p "$folder/classes/META-INF"
  touch "$folder/classes/META-INF/muster-master-$version."
  jar --create --date=2020-01-01T00:00:00Z --file "$folder/muster-yarn.jar" -C "$folder/classes" . 9>&-
  touch "$folder/complete"
fi
echo "$folder/muster-yarn.jar"
