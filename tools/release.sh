#!/usr/bin/env bash
# Makes what a release consists of, in dist/: a wheel, a Debian package, an archive that runs from any
# folder, the sources, and their checksums. All of it is made of the objects of the release preset.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<TEXT
usage: tools/release.sh [--out FOLDER] [--openssl FOLDER] [--jobs N]
  --out FOLDER      where to write (default: dist). What it holds of other versions stays.
  --openssl FOLDER  where an OpenSSL 3 is installed that the wheel and the archive get inside, for example a newer
                    one than this machine's, which they get otherwise (docs/install.md)
  --jobs N          parallel compile jobs (default: the cores, as far as memory goes)
The version is that of CMakeLists.txt; it must have a section in CHANGELOG.md.
TEXT
}

out=dist openssl='' JOBS=
while (($#)); do
  case $1 in
    --out) out=${2:?--out needs a folder}; shift ;;
    --openssl) openssl=$(cd "${2:?--openssl needs a folder}" && pwd); shift ;;
    --jobs) JOBS=${2:?--jobs needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

if [[ -n $openssl ]] && ! grep -qas 'OPENSSLDIR: "/usr/lib/ssl"' "$openssl"/lib*/libcrypto.a; then
  echo "tools/release.sh: $openssl has no lib/libcrypto.a that was configured with --openssldir=/usr/lib/ssl" >&2
  exit 1
fi

source tools/environment.sh
JOBS=${JOBS:-$(default_jobs)}
version=$(muster_version)
grep -q "^## $version" CHANGELOG.md || {
  echo "tools/release.sh: CHANGELOG.md has no section '## $version'" >&2
  exit 1
}
work=$PWD/build/package
rm -rf "$work"
mkdir -p "$work" "$out"
out=$(cd "$out" && pwd)

echo "Building muster $version" >&2
yarn_jar=$(java/yarn/build.sh)
tfrecord_jar=$(java/tfrecord/build.sh)
build_preset release -DMUSTER_YARN_JAR="$yarn_jar" -DMUSTER_TFRECORD_JAR="$tfrecord_jar" \
  -DMUSTER_PORTABLE_OPENSSL="$openssl" muster muster_portable muster-tensorflow muster-tensorflow-hdfs >"$work/build.log" ||
  { cat "$work/build.log" >&2; exit 1; }

echo "Packing the archive and the Debian package" >&2
(cd "$work" && cpack --config ../release/CPackConfig.cmake -G "TGZ;DEB" -B "$work" >cpack.log) ||
  { cat "$work/cpack.log" >&2; exit 1; }

# auditwheel names the oldest C library that the programs run with, and renames the wheel after it.
echo "Packing the wheel and the sources" >&2
python=$(python_venv python)
cmake --install build/release --component portable --strip --prefix "$work/portable" >/dev/null
mv "$work/portable/lib/muster/tensorflow-hdfs" "$work/portable/bin"
MUSTER_PREBUILT=$work/portable/bin "$python" -m pip wheel . --no-deps --no-build-isolation --quiet \
  --disable-pip-version-check --wheel-dir "$work"
PATH="$(dirname "$python"):$PATH" auditwheel repair --plat auto --only-plat \
  --wheel-dir "$work/wheel" "$work"/muster-"$version"-*.whl >"$work/auditwheel.log" 2>&1 ||
  { cat "$work/auditwheel.log" >&2; exit 1; }
"$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' \
  "$work" >/dev/null

cd "$work"
files=(muster[-_]"$version"*.{tar.gz,deb} wheel/*.whl)
mv -f "${files[@]}" "$out"
cd "$out"
sha256sum "${files[@]##*/}" | sort -k 2 >"SHA256SUMS-$version"
cat "SHA256SUMS-$version"
