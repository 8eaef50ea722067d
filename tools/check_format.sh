#!/usr/bin/env bash
# Fails when a C++ file is not as clang-format-14 would write it. `check_format.sh --fix` rewrites.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(--dry-run -Werror)
if [[ "${1:-}" == --fix ]]; then mode=(-i); fi
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' '*.inc' |
                     while read -r file; do [[ -f $file ]] && echo "$file"; done)
if ((${#files[@]} == 0)); then
  echo "check_format: no C++ files found (not a git checkout?)" >&2
  exit 1
fi
clang-format-14 "${mode[@]}" "${files[@]}"
echo "${#files[@]} files"
