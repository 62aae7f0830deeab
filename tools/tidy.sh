#!/usr/bin/env bash
# clang-tidy over every source of the product, with the flags of a configured build.
#   tools/tidy.sh [BUILD_FOLDER] [FILE...]     default: build/release, all files
# A file that was clean is not looked at again until it, a header or .clang-tidy changes (BUILD_FOLDER/tidy).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=${1:-build/release}
shift || true
if [ ! -f "$build/compile_commands.json" ]; then
  echo "$0: $build/compile_commands.json is missing; configure first: cmake --preset release" >&2
  exit 2
fi
mkdir -p "$build/tidy"
folders=(base text kernels engine server clients/cpp program)
headers=$(find "${folders[@]}" proto tests/cuda_host -type f \( -name '*.h' -o -name '*.cuh' -o -name '*.proto' \) | sort | xargs cat .clang-tidy | sha256sum)
export kernel_checks=-bugprone-implicit-widening-of-multiplication-result,-cppcoreguidelines-pro-type-member-init
kernel_checks+=,-readability-function-size

tidy_one() {
  local key stamp
  key=$( (echo "$headers"; cat "$2") | sha256sum | cut -c1-32)
  stamp="$1/tidy/$(tr / _ <<<"$2").$key"
  [ -e "$stamp" ] && return 0
  local checks=
  # In kernels 32-bit products and registers without a first value are meant, and a cut costs registers.
  [[ $2 == *.cu ]] && checks=$kernel_checks
  if clang-tidy-14 --quiet -p "$1" --checks="$checks" --extra-arg=-Wno-unknown-warning-option "$2" 2>/dev/null; then
    : >"$stamp"
  else
    echo "clang-tidy: $2 is not clean" >&2
    return 1
  fi
}
export -f tidy_one
export headers

if [ $# -gt 0 ]; then
  printf '%s\0' "$@"
else
  # Kernels as the host compiler sees them, under the stand-in.
  find "${folders[@]}" \( -name '*.cc' -o -name '*.cu' \) -print0 | sort -z
fi | xargs -0 -P "$(nproc)" -I{} bash -c 'tidy_one "$@"' _ "$build" {}
