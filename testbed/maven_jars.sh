#!/usr/bin/env bash
# maven_jars.sh POM [PROPERTY=VALUE...]: copies the jars that a POM names, with its properties replaced
# by these, once for each content of that file and each value, and prints their folder, which is under
# MUSTER_CACHE. Jars come from where this machine's Maven gets them.
set -euo pipefail

pom=$1
shift
name=$(basename "$(dirname "$(realpath "$pom")")")
hash=$( (cat "$pom" "${BASH_SOURCE[0]}" && echo "$@") | sha256sum | cut -c1-12)
folder=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/$name-$hash
mkdir -p "$folder"
exec 9>"$folder.lock"
flock 9  # whoever waited here finds it done
if [[ ! -e "$folder/complete" ]]; then
  for program in mvn java; do
    if ! command -v $program >/dev/null; then
      echo "The component tests with $name need $program: install maven and openjdk-17-jdk-headless." >&2
      exit 1
    fi
  done
  mvn --quiet --batch-mode --file "$pom" dependency:copy-dependencies -DincludeScope=runtime \
    "-DoutputDirectory=$folder/jars" "${@/#/-D}" >&2 9>&-
  touch "$folder/complete"
fi
echo "$folder/jars"
