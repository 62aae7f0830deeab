#!/usr/bin/env bash
# Everything that only a GPU can show, in one run: the op, golden, invariance and end-to-end suites on the card,
# compute-sanitizer over the op suite, the bundled model beside the CPU, then the benchmarks.
#   tests/gpu/run.sh [RESULT_FOLDER]             default: build/gpu
#   SWITCHYARD_BUILD=FOLDER tests/gpu/run.sh     a build of the preset `cuda` that was made elsewhere
#   SWITCHYARD_PYTHON=PYTHON                     one that has PyTorch and transformers, to compare with; default: python3
#   SWITCHYARD_GPU_QUICK=1                       tiny models: for the test of this script
# Writes RESULT_FOLDER/result.json, a log of each part, and a table whose rows go into docs/gpu.md. A part that fails
# does not stop the others. The time limits of all parts together are 475 s; building comes on top.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
results=${1:-build/gpu}
python=${SWITCHYARD_PYTHON:-python3}
mkdir -p "$results"
results=$(cd "$results" && pwd)

if ! card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1) || [ -z "$card" ]; then
  echo "$0: nvidia-smi finds no GPU" >&2
  exit 2
fi
build=${SWITCHYARD_BUILD:-}
if [ -z "$build" ]; then
  build=build/cuda
  cmake --preset cuda --log-level=WARNING || exit 1
  cmake --build --preset cuda -j "$(nproc)" \
    --target kernels_test golden_test engine_test end_to_end_test gpu_bench switchyard || exit 1
fi
# Nothing of a run before this one.
rm -f "$results"/*.log "$results"/bench-*.json "$results"/transformers.json "$results"/parts.tsv

# part NAME SECONDS COMMAND...: its output goes to a log of its own, its verdict to parts.tsv. A test program that finds
# no test to run says that it passed; here that is a failure.
part() {
  local name=$1 limit=$2 begin=$EPOCHREALTIME verdict=passed status=0 seconds
  shift 2
  timeout -k 5 "$limit" "$@" >"$results/$name.log" 2>&1 || status=$?
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    verdict="out of time"
  elif [ "$status" -ne 0 ]; then
    verdict=failed
  elif grep -qF '[  PASSED  ] 0 tests.' "$results/$name.log"; then
    verdict="no tests"
  fi
  seconds=$(awk "BEGIN {printf \"%.1f\", $EPOCHREALTIME - $begin}")
  printf '%-24s %-12s %8s s\n' "$name" "$verdict" "$seconds"
  printf '%s\t%s\t%s\n' "$name" "$verdict" "$seconds" >>"$results/parts.tsv"
}

echo "$card"
# Not the draws by the ten thousand: the sanitizer is a hundred times slower.
slow='*Draws*:*Sharpens*:*OrderRule*'
part op_suite 40 "$build/tests/kernels/kernels_test" --gtest_filter='*/cuda:MakeOps*'
part golden 45 "$build/tests/golden/golden_test" --gtest_filter='*_cuda*'
part batch_invariance 30 "$build/tests/engine/engine_test" \
  --gtest_filter='BatchInvariance*:*/BatchInvariance*_cuda_*'
part end_to_end 40 "$build/tests/end_to_end/end_to_end_test" --gtest_filter='*cuda*'
if command -v compute-sanitizer >/dev/null; then
  part memcheck 70 compute-sanitizer --error-exitcode 1 \
    "$build/tests/kernels/kernels_test" --gtest_filter="*/cuda:-$slow"
  part racecheck 70 compute-sanitizer --tool racecheck --error-exitcode 1 \
    "$build/tests/kernels/kernels_test" --gtest_filter="*/cuda:-$slow:*AgainstReference*"
else
  echo "compute-sanitizer is not installed: memory and race checks were not run"
fi
for device in cuda cpu; do
  part "score_$device" 10 "$build/switchyard" score --device "$device" --model models/bible-moa models/held_out.txt
done

shapes=(jetmoe-8b moeut-1b)
bench_flags=()
if [ -n "${SWITCHYARD_GPU_QUICK:-}" ]; then
  shapes=(tiny-jetmoe tiny-moeut)
  bench_flags=(--quick --batch 1 3 --kernel-batch 1 --context 6 --kernel-context 20 --steps 4 --prefill-tokens 24
    --repeats 1)
fi
part "bench_${shapes[0]}" 70 "$build/tests/gpu/gpu_bench" \
  --shape "${shapes[0]}" --json "$results/bench-${shapes[0]}.json" ${bench_flags[@]+"${bench_flags[@]}"}
part "bench_${shapes[1]}" 35 "$build/tests/gpu/gpu_bench" \
  --shape "${shapes[1]}" --json "$results/bench-${shapes[1]}.json" ${bench_flags[@]+"${bench_flags[@]}"}
part transformers 55 "$python" tests/gpu/transformers_bench.py \
  --shape "${shapes[0]}" --json "$results/transformers.json"

"$python" tests/gpu/write_result.py --results "$results" --card "$card" --date "$(date -u +%F)"
