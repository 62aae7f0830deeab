#include <cstring>

#include "kernels/cpu/out_in_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/out_in_input.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
constexpr int64_t kBlock = 2 * kLanes;

}  // namespace

void PrepareOutInInput(const WeightMatrix& matrix, const float* input, float* prepared) {
  const int64_t count = matrix.in_features;
  const int64_t whole = count / kBlock * kBlock;
  for (int64_t k = 0; k < count; k += kBlock) {
    float tail[kBlock] = {};
    const float* block = input + k;
    if (k == whole) {
      std::memcpy(tail, block, static_cast<size_t>(count - whole) * sizeof(float));
      block = tail;
    }
    if (matrix.dtype == DType::kBF16) {
      hn::Vec<FloatTag> even;
      hn::Vec<FloatTag> odd;
      hn::LoadInterleaved2(FloatTag(), block, even, odd);
      hn::StoreU(even, FloatTag(), prepared + k);
      hn::StoreU(odd, FloatTag(), prepared + k + kLanes);
    } else {
      std::memcpy(prepared + k, block, kBlock * sizeof(float));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace switchyard {

HWY_EXPORT(PrepareOutInInput);

void PrepareOutInInput(const WeightMatrix& matrix, const float* input, float* prepared) {
  HWY_DYNAMIC_DISPATCH(PrepareOutInInput)(matrix, input, prepared);
}

}  // namespace switchyard
#endif
