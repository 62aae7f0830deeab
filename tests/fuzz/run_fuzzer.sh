#!/usr/bin/env bash
# Runs one fuzzer: the kept corpus first, then new inputs for a while.
#   tests/fuzz/run_fuzzer.sh NAME [SECONDS] [BUILD_FOLDER] [LIBFUZZER_FLAG...]
# Inputs that reach new code go to BUILD_FOLDER/corpus/NAME. One that fails goes to BUILD_FOLDER/failures and is printed,
# for where the folder does not outlive the machine; `NAME_fuzzer FILE` repeats it.
set -uo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
name=$1
seconds=${2:-60}
build=${3:-$tests/../../build/fuzz}
shift $(($# < 3 ? $# : 3))

found=$build/corpus/$name
failures=$build/failures/$name
mkdir -p "$found" "$failures"
rm -f "$failures"/*
export UBSAN_OPTIONS=print_stacktrace=1
"$build/tests/fuzz/${name}_fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
  -print_final_stats=1 -verbosity=1 -artifact_prefix="$failures/" "$@" "$found" "$tests/corpus/$name"
status=$?
for failure in "$failures"/*; do
  [ -e "$failure" ] || continue
  echo "input of $(wc -c <"$failure") bytes, base64 of its gzip: $failure"
  gzip -9 <"$failure" | base64
done
exit $status
