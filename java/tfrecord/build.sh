#!/usr/bin/env bash
# Compiles TFRecord's formats for Hadoop and Spark, once for each content of their sources, and prints the path
# of the jar. Needs a JDK, and Maven for Hadoop's interfaces (pom.xml), which are not packed into it: Spark
# and Hadoop have their own. The classes run on Java 8 and later, and on Hadoop 2 and 3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

hash=$(find src build.sh pom.xml -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-12)
folder=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/tfrecord-jar-$hash
mkdir -p "$folder"
exec 9>"$folder.lock"
flock 9  # whoever waited here finds it done
if [[ ! -e "$folder/complete" ]]; then
  for program in javac jar; do
    if ! command -v $program >/dev/null; then
      echo "TFRecord's formats for Hadoop need $program to be built: install openjdk-17-jdk-headless." >&2
      exit 1
    fi
  done
  jars=$(../../testbed/maven_jars.sh pom.xml)
  rm -rf "$folder/classes"
  find src -name '*.java' -print0 |
    xargs -0 javac --release 8 -nowarn -Xlint:-options -classpath "$jars/*" -d "$folder/classes" >&2 9>&-
  jar --create --date=2020-01-01T00:00:00Z --file "$folder/muster-tfrecord.jar" -C "$folder/classes" . 9>&-
  touch "$folder/complete"
fi
echo "$folder/muster-tfrecord.jar"
