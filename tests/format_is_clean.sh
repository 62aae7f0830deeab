#!/usr/bin/env bash
# Every source file is as clang-format 14 would write it. `make format` mends what this names.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
find base text kernels engine server clients program tests \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 clang-format-14 --dry-run -Werror
