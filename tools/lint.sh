#!/usr/bin/env bash
# clang-tidy over every C++ source but unit tests, with clang's own warnings and its thread-safety
# analysis (which the asan-ubsan preset has for tests, too): one run a unity file of the lint preset, so
# that headers are read once a layer. A unity file that was clean is not read again while it, all that
# it includes and .clang-tidy are the same: what was clean is noted under MUSTER_CACHE/clean.
# usage: tools/lint.sh [--jobs N] [LAYER]     LAYER, as in formats or engine_native: only that one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=$(nproc)
if [[ "${1:-}" == --jobs ]]; then
  jobs=$2
  shift 2
fi
for tool in clang++-14 clang-tidy-14; do
  if ! command -v "$tool" >/dev/null; then
    echo "lint.sh: $tool is missing: apt-get install clang-14 clang-tidy-14" >&2
    exit 1
  fi
done
mkdir -p build
exec 9>build/lint.lock
flock 9  # whoever waited here finds most of it done
cmake --preset lint >/dev/null
clean=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/clean
mkdir -p "$clean"
find "$clean" -type f -mtime +30 -delete
: >build/lint/errors
python3 tools/lint.py --jobs "$jobs" --clean "$clean" --layer "${1:-}" 2>>build/lint/errors && exit 0
grep -v 'warnings generated\|Suppressed\|Use -header-filter' build/lint/errors >&2 || true
exit 1
