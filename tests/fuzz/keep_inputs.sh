#!/usr/bin/env bash
# Adds to the kept corpus the fewest inputs that a run found and that reach code which no kept one reaches.
#   tests/fuzz/keep_inputs.sh NAME [BUILD_FOLDER]
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
build=${2:-$tests/../../build/fuzz}
"$build/tests/fuzz/$1_fuzzer" -set_cover_merge=1 -use_counters=0 "$tests/corpus/$1" "$build/corpus/$1" 2>&1 | tail -1
du -sb "$tests/corpus/$1"
