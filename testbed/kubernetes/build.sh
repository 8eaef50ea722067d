#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kube-controller-manager from the Go modules that go.mod pins, once
# for each content of this folder's files for Go, and prints the folder of the three programs. About
# 10 minutes of a core and 1.5 GB of disk, of which 250 MB stay, under MUSTER_CACHE. Modules come from
# where this machine's Go gets them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

wanted=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
kubernetes=$(sed -n 's/^\tk8s.io\/kubernetes v\([0-9.]*\).*/\1/p' go.mod)
hash=$(cat go.mod go.sum etcd/main.go build.sh | sha256sum | cut -c1-12)
folder=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/kubernetes-$hash
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9  # whoever waited here finds it done
if [[ ! -e "$folder/complete" ]]; then
  found=$(go env GOVERSION 2>/dev/null || true)
  found=${found#go}
  if [[ -z "$found" || "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]]; then
    echo "The Kubernetes API server of the component tests is built with Go $wanted or newer, but" \
      "this machine has ${found:+Go }${found:-no Go in the PATH}: install it (go.dev/doc/install)." >&2
    exit 1
  fi
  echo "Building Kubernetes $kubernetes and etcd in $folder with Go $found (about 10 minutes)" >&2
  mkdir -p "$folder/bin"
  # A work folder of its own for modules and objects, which an interrupted build goes on from.
  export GOMODCACHE="$folder/work/modules" GOCACHE="$folder/work/objects"
  export GOFLAGS="-modcacherw -trimpath -buildvcs=false" CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off
  version=k8s.io/component-base/version
  flags="-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=${kubernetes%%.*}"
  flags+=" -X $version.gitMinor=$(cut -d. -f2 <<<"$kubernetes")"
  nice -n 10 go build -p "${JOBS:-2}" -ldflags "$flags" -o "$folder/bin/" ./etcd \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager >&2 9>&-
  touch "$folder/complete"
  rm -rf "$folder/work"
fi
echo "$folder/bin"
