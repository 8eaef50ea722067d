#!/usr/bin/env bash
# Compiles the ApplicationMaster and prints the path of the jar. Needs a JDK, and Maven for Hadoop's jars. The
# classes run on Hadoop 3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../build_jar.sh
programs=../../src/muster/launch/yarn/programs.h

# The version, as programs.h says it: an entry's name is found in the jar's bytes.
add_files() {
  local version
  version=$(sed -n 's/^inline constexpr int kMasterVersion = \([0-9]*\);/\1/p' "$programs")
  mkdir -p "$1/META-INF"
  touch "$1/META-INF/muster-master-$version."
}

build_jar muster-yarn "The ApplicationMaster" ../../testbed/hadoop/pom.xml "$programs"
