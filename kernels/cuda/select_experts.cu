#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {

struct SelectExpertsArgs {
  Global<const float> scores;
  Global<int32_t> ids;
  Global<float> gates;
  Global<float> margins;  // absent: not wanted
  int64_t rows = 0;
  int64_t experts = 0;
  int64_t top_k = 0;
  GateKind gate = GateKind::kSoftmaxAll;
};

namespace {

constexpr int kWarps = 4;

// Orders as the verb ranks: by score, NaN below everything, the lowest expert first among equals.
__device__ __forceinline__ uint64_t RankOf(float score, int64_t expert) {
  uint32_t rank = 0;
  if (score == score) {
    const uint32_t bits = BitsOfFloat(score + 0.0F);  // -0 equals 0
    rank = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  }
  return uint64_t{rank} << 32 | static_cast<uint32_t>(~static_cast<uint32_t>(expert));
}

__device__ __forceinline__ int64_t ExpertOfRank(uint64_t rank) {
  return static_cast<uint32_t>(~static_cast<uint32_t>(rank));
}

// The rank of the best below `last`; 0 when there is none.
__device__ __forceinline__ uint64_t
BestBelow(uint64_t last, const Global<const float>& scores, int64_t experts, int lane) {
  uint64_t best = 0;
  for (int64_t e = lane; e < experts; e += kWarpLanes) {
    const uint64_t rank = RankOf(scores[e], e);
    best = rank < last && rank > best ? rank : best;
  }
  return WarpReduce(best, Larger());
}

}  // namespace

// A warp for each row. The chosen ones are found one after the other, each the best below the last.
__global__ void SelectExpertsKernel(SelectExpertsArgs args) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpLanes;
  if (row >= args.rows) {
    return;
  }
  const Global<const float> scores = args.scores.From(row * args.experts);
  uint64_t last = ~uint64_t{0};
  float largest = -INFINITY;  // of the chosen, NaN aside: the first, if it is a number
  for (int64_t slot = 0; slot < args.top_k; ++slot) {
    last = BestBelow(last, scores, args.experts, lane);
    const int64_t expert = ExpertOfRank(last);
    const float score = scores[expert];
    largest = slot == 0 && score == score ? score : largest;
    if (lane == 0) {
      args.ids[row * args.top_k + slot] = static_cast<int32_t>(expert);
      args.gates[row * args.top_k + slot] = score;  // first the score, then what becomes of it
    }
  }
  if (args.margins.exists()) {
    const uint64_t left_out = BestBelow(last, scores, args.experts, lane);
    if (lane == 0) {
      args.margins[row] =
          left_out == 0 ? 0.0F : scores[ExpertOfRank(last)] - scores[ExpertOfRank(left_out)];
    }
  }
  __syncwarp();

  const Global<float> gates = args.gates.From(row * args.top_k);
  float sum = 0;
  if (args.gate == GateKind::kSoftmaxAll) {
    for (int64_t e = lane; e < args.experts; e += kWarpLanes) {
      sum += expf(scores[e] - largest);
    }
    sum = WarpReduce(sum, Sum());
  } else if (args.gate == GateKind::kSoftmaxSelected) {
    for (int64_t slot = lane; slot < args.top_k; slot += kWarpLanes) {
      sum += expf(gates[slot] - largest);
    }
    sum = WarpReduce(sum, Sum());
  }
  for (int64_t slot = lane; slot < args.top_k; slot += kWarpLanes) {
    const float score = gates[slot];
    gates[slot] = args.gate == GateKind::kSigmoid ? 1.0F / (1.0F + expf(-score))
                                                  : expf(score - largest) / sum;
  }
}

void CudaOps::SelectExperts(GateKind gate, TensorView scores, const Routing& out) {
  CHECK(scores.rank() == 3) << "scores are " << scores.ToString();
  const int64_t tokens = scores.dim(0);
  const int64_t groups = scores.dim(1);
  const int64_t experts = scores.dim(2);
  CHECK(out.expert_ids.rank() == 3) << "expert ids are " << out.expert_ids.ToString();
  const int64_t top_k = out.expert_ids.dim(2);
  CHECK(out.experts == experts && top_k >= 1 && top_k <= experts)
      << "top_k=" << top_k << " out.experts=" << out.experts << " scores " << scores.ToString();
  CheckShape("expert_ids", out.expert_ids, DType::kI32, {tokens, groups, top_k});
  CheckShape("gates", out.gates, DType::kF32, {tokens, groups, top_k});
  if (out.margins.exists()) {
    CheckShape("margins", out.margins, DType::kF32, {tokens, groups});
  }
  if (!status_.ok() || tokens * groups == 0) {
    return;
  }
  const SelectExpertsArgs select = {
      ConstFloats(scores),
      Ints(out.expert_ids),
      Floats(out.gates),
      out.margins.exists() ? Floats(out.margins) : Global<float>(),
      tokens * groups,
      experts,
      top_k,
      gate};
  Launch(
      SelectExpertsKernel,
      dim3{GridSize(DivideUp(tokens * groups, kWarps)), 1, 1},
      dim3{kWarps * kWarpLanes, 1, 1},
      0,
      stream_->get(),
      select
  );
  NoteLaunch("SelectExperts");
}

}  // namespace switchyard
