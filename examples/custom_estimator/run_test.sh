#!/usr/bin/env bash
# Runs the example into an empty folder: it must learn, its hook must speak.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder/model" >"$folder/out"
cat "$folder/out"
grep -q '^step 400: 0.[01]' "$folder/out"
awk '$1 == "accuracy" && $2 > 0.95 {good = 1} END {exit !good}' "$folder/out"
