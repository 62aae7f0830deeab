#!/usr/bin/env bash
# Everything that only a GPU can show, in one run: the op, golden, invariance and end-to-end suites on the card,
# compute-sanitizer over the op suite, and decoding of the bundled models beside the CPU.
#   tests/gpu/run.sh [RESULT_FOLDER]       default: build/gpu
#   SWITCHYARD_BUILD=FOLDER tests/gpu/run.sh     a build of the preset `cuda` that was made elsewhere
# Writes RESULT_FOLDER/result.json and prints the same as a table. A suite that fails does not stop the others.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
results=${1:-build/gpu}
mkdir -p "$results"
results=$(cd "$results" && pwd)

if ! card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1); then
  echo "$0: nvidia-smi finds no GPU" >&2
  exit 2
fi
build=${SWITCHYARD_BUILD:-}
if [ -z "$build" ]; then
  build=build/cuda
  cmake --preset cuda --log-level=WARNING || exit 1
  cmake --build --preset cuda -j "$(nproc)" \
    --target kernels_test golden_test engine_test end_to_end_test switchyard || exit 1
fi

rows=()
failures=0
# suite NAME SECONDS COMMAND...: one row; the output goes to a file of its own.
suite() {
  local name=$1 limit=$2 begin seconds verdict=passed
  shift 2
  begin=$(date +%s.%N)
  if ! timeout "$limit" "$@" >"$results/$name.log" 2>&1; then
    verdict=FAILED
    failures=$((failures + 1))
  fi
  seconds=$(printf '%.1f' "$(echo "$(date +%s.%N) - $begin" | bc)")
  printf '%-24s %-8s %8s s\n' "$name" "$verdict" "$seconds"
  rows+=("{\"name\": \"$name\", \"verdict\": \"$verdict\", \"seconds\": $seconds}")
}

echo "$card"
suite op_suite 60 "$build/tests/kernels/kernels_test" --gtest_filter='*/cuda:MakeOps*'
suite golden 90 "$build/tests/golden/golden_test" --gtest_filter='*_cuda*'
suite batch_invariance 60 "$build/tests/engine/engine_test" --gtest_filter='BatchInvariance*:*/BatchInvariance*_cuda_*'
suite end_to_end 60 "$build/tests/end_to_end/end_to_end_test" --gtest_filter='*cuda*'
if command -v compute-sanitizer >/dev/null; then
  # Not the draws by the ten thousand: the sanitizer is a hundred times slower.
  filter='*/cuda:-*Draws*:*Sharpens*:*OrderRule*'
  suite memcheck 120 compute-sanitizer --error-exitcode 1 "$build/tests/kernels/kernels_test" --gtest_filter="$filter"
  suite racecheck 120 compute-sanitizer --tool racecheck --error-exitcode 1 \
    "$build/tests/kernels/kernels_test" --gtest_filter='*/cuda:-*Draws*:*Sharpens*:*OrderRule*:*AgainstReference*'
else
  echo "compute-sanitizer is not installed: memory and race checks were not run"
fi
for model in bible-moa bible-switchhead; do
  for device in cuda cpu; do
    suite "score_${model}_${device}" 60 \
      "$build/switchyard" score --device "$device" --model "models/$model" models/held_out.txt
  done
done

joined=$(IFS=,; echo "${rows[*]}")
printf '{"card": "%s", "date": "%s", "failures": %d, "suites": [%s]}\n' \
  "$card" "$(date -u +%F)" "$failures" "$joined" >"$results/result.json"
exit "$((failures > 0))"
