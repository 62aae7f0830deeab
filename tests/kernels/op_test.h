#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ops.h"
#include "tests/support/ops_memory.h"
#include "tests/support/test_devices.h"

// Every test of a verb runs on every backend:
//   class RopeTest : public OpTest {};
//   INSTANTIATE_TEST_SUITE_P(Backends, RopeTest, testing::ValuesIn(BackendNames()),
//   BackendTestName);

namespace switchyard {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::string BackendTestName(const testing::TestParamInfo<std::string>& info);

std::unique_ptr<Ops> MakeTestOps(const std::string& backend, int threads);

// The numbers of tokens, the dimensions and the weights that every comparison runs over.
const std::vector<int64_t>& OddTokenCounts();
const std::vector<int64_t>& OddDims();
struct OddSize {
  int64_t tokens = 0;
  int64_t dim = 0;
};
// Each of the one with each of the other.
std::vector<OddSize> OddSizes();
struct WeightForm {
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kOutIn;
};
const std::vector<WeightForm>& WeightForms();

// Both sides widen the same stored numbers exactly, so only the order of float32 sums differs: for
// the sums of up to some hundred products of numbers below one of these tests the same bound holds
// for every dtype.
inline constexpr float kSumTolerance = 3e-5F;

// Element by element; |difference| <= tolerance * max(1, |expected|).
void ExpectClose(
    const std::vector<float>& actual,
    const std::vector<float>& expected,
    float tolerance = kSumTolerance
);
// The same bits.
void ExpectIdentical(const std::vector<float>& actual, const std::vector<float>& expected);

class OpTest : public testing::TestWithParam<std::string> {
 protected:
  OpTest() : ops_(MakeTestOps(GetParam(), 2)), memory_(*ops_) {}

  std::unique_ptr<Ops> ops_;
  OpsMemory memory_;
};

// For comparisons: the same call on the backend under test and on the reference.
class AgainstReferenceTest : public testing::TestWithParam<std::string> {
 protected:
  AgainstReferenceTest()
      : ops_(MakeTestOps(GetParam(), 2)), reference_(MakeTestOps("reference", 1)) {}

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Ops> reference_;
};

}  // namespace switchyard
