# Sourced by ./quickstart, ./test, .ci/run and bench/run: the Debian 12 packages each needs, and how
# they are installed. Why each is needed: docs/dependencies.md.

BUILD_PACKAGES=(
  g++ cmake ninja-build ccache
  libabsl-dev libyaml-cpp-dev libpugixml-dev libcli11-dev nlohmann-json3-dev libprotozero-dev
  zlib1g-dev libzstd-dev libfarmhash-dev libboost-dev libssl-dev
  libgoogle-perftools-dev librdkafka-dev
)
TEST_PACKAGES=(
  maven openjdk-17-jdk-headless krb5-kdc krb5-admin-server krb5-user curl
  git libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-venv unzip zstd
  dpkg-dev file
  zsh fish
  iproute2 nftables openssh-server openssh-client openssl
  clang-format-14
)
CI_PACKAGES=(
  clang-14 clang-tidy-14 libclang-rt-14-dev llvm-14
)
BENCH_PACKAGES=(
  libbenchmark-dev libprotobuf-dev protobuf-compiler python3 python3-venv
  libgloo-dev libopenmpi-dev openmpi-bin
)

# install_packages NAME...: installs those that are missing, with sudo when not root. Says so.
install_packages() {
  local missing=() package
  for package in "$@"; do
    if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    echo "All ${#} Debian packages are installed."
    return 0
  fi
  local as_root=()
  if ((EUID != 0)); then
    as_root=(sudo)
    if ! command -v sudo >/dev/null; then
      echo "These packages are missing, and there is neither root nor sudo to install them:" >&2
      echo "  apt-get install ${missing[*]}" >&2
      return 1
    fi
  fi
  echo "Installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
    --no-install-recommends "${missing[@]}" >/dev/null
}
