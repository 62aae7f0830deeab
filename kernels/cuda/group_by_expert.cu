#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {

struct GroupArgs {
  Global<const int32_t> ids;
  Global<const float> gates;
  Global<const int32_t> phases;
  Global<int32_t> order;
  Global<int32_t> offsets;
  Global<int64_t> counter_tokens;  // absent: nothing is counted
  Global<int64_t> counter_gate_sum;
  Global<const float> margins;
  Global<int64_t> counter_margin_sum;  // absent: margins are not counted
  int64_t assignments = 0;
  int64_t groups = 0;
  int64_t top_k = 0;
  int64_t experts = 0;  // of one group
};

namespace {

constexpr int kMaxWarps = 8;
constexpr int64_t kAssignmentsPerWarp = 512;

// -1 for an unused slot.
__device__ __forceinline__ int64_t ExpertOf(const GroupArgs& args, int64_t assignment) {
  const int32_t id = args.ids[assignment];
  return id < 0 ? -1 : assignment / args.top_k % args.groups * args.experts + id;
}

__device__ __forceinline__ int64_t GateUnits(float gate) {
  return IsFinite(gate) ? llround(static_cast<double>(gate) / kGateSumUnit) : 0;
}

__device__ __forceinline__ int64_t MarginUnits(float margin) {
  const float counted = margin < kLargestMargin ? margin : kLargestMargin;
  return IsFinite(margin) ? llround(static_cast<double>(counted) / kMarginSumUnit) : 0;
}

// What a warp finds in its stretch of the assignments. Counts fit 32 bits, as do the ids of
// assignments; the sums do not. As 64 bits all of them would not fit the registers.
enum FoundCount { kBefore, kUsed, kMine, kFirstTokens, kCounts = kFirstTokens + kPhases };
enum FoundSum { kGates, kMargins = kPhases, kSums = 2 * kPhases };
struct Found {
  int32_t counts[kCounts] = {};
  int64_t sums[kSums] = {};
};

__device__ __forceinline__ void CountStretch(
    const GroupArgs& args, int64_t expert, int64_t begin, int64_t end, Found& found
) {
  for (int64_t a = begin + threadIdx.x % kWarpLanes; a < end; a += kWarpLanes) {
    const int64_t other = ExpertOf(args, a);
    found.counts[kUsed] += other >= 0 ? 1 : 0;
    found.counts[kBefore] += other >= 0 && other < expert ? 1 : 0;
    if (other != expert) {
      continue;
    }
    ++found.counts[kMine];
    if (args.counter_tokens.exists()) {
      const int32_t phase = args.phases[a / (args.groups * args.top_k)];
      const int64_t units = GateUnits(args.gates[a]);
      const bool has_margin = args.counter_margin_sum.exists() && a % args.top_k == 0;
      const int64_t margin_units = has_margin ? MarginUnits(args.margins[a / args.top_k]) : 0;
#pragma unroll
      for (int p = 0; p < kPhases; ++p) {
        found.counts[kFirstTokens + p] += p == phase ? 1 : 0;
        found.sums[kGates + p] += p == phase ? units : 0;
        found.sums[kMargins + p] += p == phase ? margin_units : 0;
      }
    }
  }
  WarpSum(found.counts);
  WarpSum(found.sums);
}

}  // namespace

// A block for each expert, a warp for each stretch of the assignments: it counts what comes before,
// then writes its own, ascending. No other block touches the expert's counters.
__global__ void __launch_bounds__(kMaxWarps* kWarpLanes) GroupByExpertKernel(GroupArgs args) {
  SHARED_ARRAY(int32_t, all_counts, kMaxWarps * kCounts);
  SHARED_ARRAY(int64_t, all_sums, kMaxWarps * kSums);
  const int64_t expert = blockIdx.x;
  const int64_t experts = args.groups * args.experts;
  const int warps = static_cast<int>(blockDim.x) / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int64_t stretch = (args.assignments + warps - 1) / warps;
  const int64_t begin = warp * stretch;
  const int64_t end = begin + stretch < args.assignments ? begin + stretch : args.assignments;

  Found found;
  CountStretch(args, expert, begin, end, found);
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < kCounts; ++i) {
      all_counts[warp * kCounts + i] = found.counts[i];
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      all_sums[warp * kSums + i] = found.sums[i];
    }
  }
  __syncthreads();
  int64_t first = 0;  // of this expert's part of the order
  int64_t place = 0;  // of this warp's part of that
  int64_t used = 0;
  for (int w = 0; w < warps; ++w) {
    first += all_counts[w * kCounts + kBefore];
    used += all_counts[w * kCounts + kUsed];
    place += w < warp ? int64_t(all_counts[w * kCounts + kMine]) : 0;
  }
  place += first;

  for (int64_t group = begin; group < end; group += kWarpLanes) {
    const int64_t a = group + lane;
    const bool mine = a < end && ExpertOf(args, a) == expert;
    const uint32_t votes = Ballot(mine);
    if (mine) {
      args.order[place + PopulationCount(votes & ((1U << lane) - 1))] = static_cast<int32_t>(a);
    }
    place += PopulationCount(votes);
  }
  if (expert == 0) {
    for (int64_t unused = used + threadIdx.x; unused < args.assignments; unused += blockDim.x) {
      args.order[unused] = -1;
    }
  }
  if (threadIdx.x != 0) {
    return;
  }
  args.offsets[expert] = static_cast<int32_t>(first);
  if (expert == experts - 1) {
    args.offsets[experts] = static_cast<int32_t>(used);
  }
  for (int phase = 0; phase < kPhases && args.counter_tokens.exists(); ++phase) {
    for (int w = 0; w < warps; ++w) {
      args.counter_tokens[phase * experts + expert] +=
          all_counts[w * kCounts + kFirstTokens + phase];
      args.counter_gate_sum[phase * experts + expert] += all_sums[w * kSums + kGates + phase];
      if (args.counter_margin_sum.exists()) {
        args.counter_margin_sum[phase * experts + expert] += all_sums[w * kSums + kMargins + phase];
      }
    }
  }
}

void CudaOps::GroupByExpert(
    TensorView phases, const RouterCounters& counters, const GroupedRouting& out
) {
  const TensorView& ids = out.routing.expert_ids;
  CHECK(ids.rank() == 3) << "expert ids are " << ids.ToString();
  const int64_t experts = ids.dim(1) * out.routing.experts;
  CheckShape("gates", out.routing.gates, DType::kF32, {ids.dim(0), ids.dim(1), ids.dim(2)});
  CheckElements("order", out.order, DType::kI32, ids.elements());
  CheckElements("offsets", out.offsets, DType::kI32, experts + 1);
  GroupArgs group;
  if (counters.tokens.exists()) {
    CheckElements("phases", phases, DType::kI32, ids.dim(0));
    CheckShape("counters.tokens", counters.tokens, DType::kI64, {kPhases, experts});
    CheckShape("counters.gate_sum", counters.gate_sum, DType::kI64, {kPhases, experts});
    group.phases = ConstInts(phases);
    group.counter_tokens = Longs(counters.tokens);
    group.counter_gate_sum = Longs(counters.gate_sum);
    if (counters.margin_sum.exists()) {
      CheckShape("margins", out.routing.margins, DType::kF32, {ids.dim(0), ids.dim(1)});
      CheckShape("counters.margin_sum", counters.margin_sum, DType::kI64, {kPhases, experts});
      group.margins = ConstFloats(out.routing.margins);
      group.counter_margin_sum = Longs(counters.margin_sum);
    }
  }
  if (!status_.ok() || experts == 0) {
    return;
  }
  group.ids = ConstInts(ids);
  group.gates = ConstFloats(out.routing.gates);
  group.order = Ints(out.order);
  group.offsets = Ints(out.offsets);
  group.assignments = ids.elements();
  group.groups = ids.dim(1);
  group.top_k = ids.dim(2);
  group.experts = out.routing.experts;
  const int64_t warps = std::clamp<int64_t>(group.assignments / kAssignmentsPerWarp, 1, kMaxWarps);
  Launch(
      GroupByExpertKernel,
      dim3{GridSize(experts), 1, 1},
      dim3{static_cast<unsigned>(warps) * kWarpLanes, 1, 1},
      0,
      stream_->get(),
      group
  );
  NoteLaunch("GroupByExpert");
}

}  // namespace switchyard
