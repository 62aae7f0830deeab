#include "tests/kernels/op_test.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace switchyard {

std::string BackendTestName(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

std::unique_ptr<Ops> MakeTestOps(const std::string& backend, int threads) {
  StatusOr<std::unique_ptr<Ops>> ops = MakeOps({.device = DeviceOf(backend), .threads = threads});
  CHECK(ops.ok()) << ops.status().ToString();
  return *std::move(ops);
}

const std::vector<int64_t>& OddTokenCounts() {
  static const std::vector<int64_t> kCounts = {1, 7, 129};
  return kCounts;
}

const std::vector<int64_t>& OddDims() {
  static const std::vector<int64_t> kDims = {1, 3, 16, 40, 129};
  return kDims;
}

std::vector<OddSize> OddSizes() {
  std::vector<OddSize> sizes;
  for (const int64_t tokens : OddTokenCounts()) {
    for (const int64_t dim : OddDims()) {
      sizes.push_back({tokens, dim});
    }
  }
  return sizes;
}

const std::vector<WeightForm>& WeightForms() {
  static const std::vector<WeightForm> kForms = {
      {DType::kF32, WeightLayout::kOutIn},
      {DType::kF32, WeightLayout::kInOut},
      {DType::kBF16, WeightLayout::kOutIn},
      {DType::kBF16, WeightLayout::kInOut},
      {DType::kF16, WeightLayout::kOutIn},
      {DType::kF16, WeightLayout::kInOut},
  };
  return kForms;
}

void ExpectClose(
    const std::vector<float>& actual, const std::vector<float>& expected, float tolerance
) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const float bound = tolerance * std::max(1.0F, std::abs(expected[i]));
    ASSERT_NEAR(actual[i], expected[i], bound) << "element " << i;
  }
}

void ExpectIdentical(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << ": " << actual[i] << " and " << expected[i];
  }
}

}  // namespace switchyard
