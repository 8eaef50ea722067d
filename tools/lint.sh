#!/usr/bin/env bash
# clang-tidy over every C++ source, tests included, with clang's own warnings and its thread-safety
# analysis: one run a unity file of the lint preset, so that headers are read once a layer.
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
cmake --preset lint >/dev/null
python3 - "${1:-}" <<'PYTHON' >build/lint/sources
import json, sys
for entry in json.load(open("build/lint/compile_commands.json")):
    target = entry["file"].partition("/CMakeFiles/")[2].partition(".dir/")[0]
    if sys.argv[1] in ("", target.removeprefix("muster_").removesuffix("_test")):
        print(entry["file"])
PYTHON
if [[ ! -s build/lint/sources ]]; then
  echo "lint.sh: no sources for '${1:-}'" >&2
  exit 1
fi
tidy() {
  xargs -r -P "$jobs" -n 1 clang-tidy-14 --quiet -p build/lint "$@" 2>>build/lint/errors
}
: >build/lint/errors
failed=0
sed '/_test\.dir\//d' build/lint/sources | tidy || failed=1
# In tests clang's own warnings count; the rest of the list costs more there than it finds.
sed -n '/_test\.dir\//p' build/lint/sources |
  tidy --checks='-*,clang-diagnostic-*,google-build-using-namespace,misc-unused-using-decls' ||
  failed=1
if ((failed)); then
  grep -v 'warnings generated\|Suppressed\|Use -header-filter' build/lint/errors >&2 || true
  exit 1
fi
echo "clang-tidy: $(wc -l <build/lint/sources) unity files are clean"
