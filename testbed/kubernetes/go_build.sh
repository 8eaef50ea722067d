#!/usr/bin/env bash
# go_build.sh WHAT GO_MOD FILES... -- COMMAND...: builds programs from pinned Go modules once for each
# content of the files, by COMMAND, and prints the folder that has them, under MUSTER_CACHE. WHAT is its
# name there, and what messages call it. COMMAND gets that folder as its last argument and builds with a
# work folder of its own, from which an interrupted build continues. Modules come from where this
# machine's Go gets them.
set -euo pipefail

what=$1
shift
wanted=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' "$1")
files=()
while [[ $1 != -- ]]; do
  files+=("$1")
  shift
done
shift
hash=$(cat "${files[@]}" | sha256sum | cut -c1-12)
folder=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/$what-$hash
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9  # whoever waited here finds it done
if [[ ! -e "$folder/complete" ]]; then
  found=$(go env GOVERSION 2>/dev/null || true)
  found=${found#go}
  if [[ -z "$found" || "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]]; then
    echo "$what, which tests and benchmarks use, is built with Go $wanted or newer, but this machine has" \
      "${found:+Go }${found:-no Go in the PATH}: install it (go.dev/doc/install)." >&2
    exit 1
  fi
  echo "Building $what in $folder with Go $found" >&2
  mkdir -p "$folder/bin"
  export GOMODCACHE="$folder/work/modules" GOCACHE="$folder/work/objects"
  export GOFLAGS="-modcacherw -trimpath -buildvcs=false" CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off
  nice -n 10 "$@" "$folder/bin" >&2 9>&-
  touch "$folder/complete"
  rm -rf "$folder/work"
fi
echo "$folder/bin"
