#!/usr/bin/env bash
# Compiles TFRecord's formats for Hadoop and Spark and prints the path of the jar. Needs a JDK, and Maven for
# Hadoop's interfaces. The classes run on Hadoop 2 and 3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../build_jar.sh
build_jar muster-tfrecord "TFRecord's formats for Hadoop" pom.xml pom.xml
