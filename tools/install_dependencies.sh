#!/usr/bin/env bash
# Installs what Switchyard needs on Debian 12, from Debian's own packages, and nothing that is already there.
#   tools/install_dependencies.sh [build|test|train]
#     build  to build and run the server and its command (the default)
#     test   the same and what `make test` uses
#     train  the same as build and what tools/train_demo uses
# Needs root or sudo when something is missing.
set -euo pipefail

build=(
  g++ cmake ninja-build make pkg-config git ca-certificates
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libhwy-dev libsentencepiece-dev libpcre2-dev
  libcli11-dev libspdlog-dev nlohmann-json3-dev
  libcpp-httplib-dev libssl-dev prometheus-cpp-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
test=(
  clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev libdnnl-dev openssl prometheus chromium fonts-dejavu-core
  python3 python3-numpy python3-grpcio python3-grpc-tools python3-protobuf python3-yaml
  python3-setuptools python3-wheel python3-pip python3-venv
  buildah ccache curl debootstrap haproxy
)
train=(python3-torch python3-numpy python3-matplotlib python3-sentencepiece sentencepiece bible-kjv)

case "${1:-build}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  train) wanted=("${build[@]}" "${train[@]}") ;;
  *)
    echo "usage: $0 [build|test|train]" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null; then
  echo "$0: this installer knows Debian's apt-get, which is not here; install these by hand: ${wanted[*]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "$0: needs root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
