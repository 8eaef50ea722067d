#!/usr/bin/env bash
# once.sh PROGRAM [INPUT...]: runs a test program, unless the very same program has passed before with
# the same INPUTs (test data, other programs that it starts): then the results of that time are given
# again, so that they are counted. Programs and inputs are compared by their bytes.
# PROGRAM has a folder for temporary files of its own. What has passed lies under MUSTER_CACHE/passed.
# MUSTER_RUN_AGAIN=1 runs all. Exit code: PROGRAM's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/content_key.sh"
program=$1
shift
results=${GTEST_OUTPUT:-}
results=${results#xml:}
results=${results%/}
name=$(basename "$program")
cache=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/passed

inputs=("$program")
for input in "$@"; do
  if [[ -e $input ]]; then inputs+=("$input"); fi
done
passed=$cache/$name-$(content_key "${inputs[@]}").xml

if [[ -n $results && -e $passed && -z ${MUSTER_RUN_AGAIN:-} ]]; then
  mkdir -p "$results"
  cp "$passed" "$results/$name.xml"
  echo "$name has passed before, byte for byte the same ($passed)"
  exit 0
fi
# Other runs of this program, as under a sanitizer, may go on at the same time.
own=$(mktemp -d "${TMPDIR:-/tmp}/muster-test-XXXXXX")
trap 'rm -rf "$own"' EXIT
# A test may start a process of another user, who opens files in it.
chmod 711 "$own"
mkdir -m 711 "$own/tmp"
outcome=0
TEST_TMPDIR=$own/tmp GTEST_OUTPUT=${results:+xml:$own/} "$program" || outcome=$?
if [[ -n $results && -e $own/$name.xml ]]; then
  mkdir -p "$results"
  cp "$own/$name.xml" "$results/$name.xml"
  if ((outcome == 0)); then
    mkdir -p "$cache"
    find "$cache" -name "$name-*.xml" -mtime +30 -delete
    cp "$own/$name.xml" "$passed.$$"
    mv "$passed.$$" "$passed"
  fi
fi
exit "$outcome"
