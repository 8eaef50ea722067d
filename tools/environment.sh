# Sourced by ./quickstart, ./test, .ci/run, bench/run and tools/release.sh, in the repository's root:
# where caches lie, how many jobs fit this machine, and small helpers. Leaves nothing outside
# MUSTER_CACHE and build/.

export MUSTER_CACHE="${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}"
export CCACHE_DIR="${CCACHE_DIR:-$MUSTER_CACHE/ccache}"
export CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-2G}"
# What one build folder compiled is found by the others: paths count from the repository's root.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
mkdir -p "$MUSTER_CACHE"

# The version of this checkout.
muster_version() { sed -n 's/^project(muster VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

# How many compile jobs memory holds at 1.5 GiB a job.
jobs_in_memory() { awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo; }

# One compile job for each core, but no more than memory holds.
default_jobs() {
  local cores by_memory
  cores=$(nproc)
  by_memory=$(jobs_in_memory)
  if ((by_memory < 1)); then by_memory=1; fi
  echo $((cores < by_memory ? cores : by_memory))
}

# build_preset PRESET [-DOPTION=VALUE...] [TARGET...], with JOBS jobs. One process at a time builds a
# preset; the next one waits, and finds most of it done.
build_preset() {
  local preset=$1 options=()
  shift
  while [[ ${1:-} == -D* ]]; do
    options+=("$1")
    shift
  done
  mkdir -p build
  # Joined by &&: a caller's `||` turns `set -e` off in here.
  (
    flock 9 &&
      { cmake --preset "$preset" "${options[@]}" >"build/configure-$preset.log" 2>&1 ||
        { cat "build/configure-$preset.log"; exit 1; }; } &&
      cmake --build --preset "$preset" -j "$JOBS" ${1:+--target "$@"} 9>&-
  ) 9>"build/$preset.lock"
}

# python_venv NAME [VERSION]: a virtual environment with what tools/requirements-NAME.txt pins, made
# once for each content of that file. Prints the path of its interpreter; nothing where VERSION is
# given and this machine has no such Python.
python_venv() {
  local requirements=tools/requirements-$1.txt version=${2:-} hash folder base
  if [[ -n "$version" && -z "$(python_of "$version")" ]]; then return 0; fi
  hash=$(sha256sum "$requirements" | cut -c1-12)
  folder="$MUSTER_CACHE/venv-$1-$hash"
  # Joined by &&: a caller's `||` turns `set -e` off in here.
  (
    flock 9
    [[ -e "$folder/complete" ]] || {
      base=$(if [[ -n "$version" ]]; then python_of "$version"; else usable_python; fi) &&
        echo "Installing from PyPI into $folder: $(grep -v '^#' "$requirements" | xargs)" >&2 &&
        rm -rf "$folder" && "$base" -m venv "$folder" &&
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
          -r "$requirements" >&2 &&
        touch "$folder/complete"
    }
  ) 9>"$folder.lock" || return 1
  echo "$folder/bin/python"
}

# python_of VERSION: an interpreter of that version in the PATH or of pyenv; nothing without one.
python_of() {
  local candidate
  for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
    if "$candidate" -c 'import sys, venv, ensurepip
sys.exit(sys.argv[1] != "%d.%d" % sys.version_info[:2])' "$1" 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
}

# The first interpreter that tensorflow 2.15 has wheels for and that can make an environment.
usable_python() {
  local candidate
  for candidate in python3.11 python3 /usr/bin/python3 python3.10 python3.9; do
    if "$candidate" -c 'import sys, venv, ensurepip
sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
  echo "No Python from 3.9 to 3.11 with venv found: tensorflow 2.15 has wheels for these only." >&2
  echo "On Debian 12: apt-get install python3 python3-venv" >&2
  return 1
}
