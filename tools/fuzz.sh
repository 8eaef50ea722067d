#!/usr/bin/env bash
# fuzz.sh PROGRAM: replays fuzz/corpus/<program>/, then fuzzes for MUSTER_FUZZ_SECONDS (10), unless the very
# same program and corpus have passed that before; MUSTER_RUN_AGAIN=1 fuzzes again. What is found new stays
# in build/; an input that fails is kept in build/fuzz/artifacts/ and named.
set -euo pipefail
program=$(realpath "$1")
name=$(basename "$program")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/content_key.sh
corpus=fuzz/corpus/$name
if [[ -z "$(ls -A "$corpus" 2>/dev/null)" ]]; then
  echo "fuzz.sh: $name has no seed corpus: put some small inputs into $corpus/" >&2
  exit 1
fi
found=build/fuzz/found/$name artifacts=build/fuzz/artifacts/$name
mkdir -p "$found" "$artifacts"
flags=(-artifact_prefix="$artifacts/" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1)
export UBSAN_OPTIONS=print_stacktrace=1
seconds=${MUSTER_FUZZ_SECONDS:-10}
cache=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/passed
passed=$cache/$name-$(content_key "$program" "$corpus").$seconds-seconds
"$program" "${flags[@]}" -runs=0 "$corpus"
if [[ -e $passed && -z ${MUSTER_RUN_AGAIN:-} ]]; then exit 0; fi
"$program" "${flags[@]}" -max_total_time="$seconds" "$found" "$corpus"
mkdir -p "$cache"
find "$cache" -name "$name-*-seconds" -mtime +30 -delete
touch "$passed"
