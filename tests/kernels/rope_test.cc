#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::ElementsAre;

struct RopeCase {
  int64_t tokens = 0;
  int64_t head_dim = 0;
  int64_t rotary_dims = 0;
};

std::vector<float> Rotated(Ops& ops, const RopeCase& shape) {
  OpsMemory memory(ops);
  const int64_t heads = 3;
  const TensorView x = memory.Floats(
      {shape.tokens, heads, shape.head_dim}, RandomFloats(shape.tokens * heads * shape.head_dim, 1)
  );
  const TensorView positions = memory.Ints({shape.tokens}, RandomInts(shape.tokens, 4096, 2));
  ops.Rope({.positions = positions, .rotary_dims = shape.rotary_dims, .base = 10000}, x);
  return memory.ReadFloats(x);
}

class RopeTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Backends, RopeTest, testing::ValuesIn(BackendNames()), BackendTestName);

TEST_P(RopeTest, LeavesPositionZeroAlone) {
  const TensorView x = memory_.Floats({1, 1, 4}, {1, 2, 3, 4});

  ops_->Rope({.positions = memory_.Ints({1}, {0}), .rotary_dims = 4}, x);

  EXPECT_THAT(memory_.ReadFloats(x), ElementsAre(1, 2, 3, 4));
}

TEST_P(RopeTest, RotatesChannelWithChannelHalfTheDimsFurther) {
  const TensorView x = memory_.Floats({1, 1, 4}, {1, 0, 0, 1});

  ops_->Rope({.positions = memory_.Ints({1}, {2}), .rotary_dims = 4, .base = 100}, x);

  // Pair (0, 2) turns by 2, pair (1, 3) by 2 * 100^(-1/2) = 0.2.
  ExpectClose(
      memory_.ReadFloats(x),
      {std::cos(2.0F), -std::sin(0.2F), std::sin(2.0F), std::cos(0.2F)},
      1e-6F
  );
}

TEST_P(RopeTest, PassesTheChannelsAfterTheRotaryOnesUnchanged) {
  const TensorView x = memory_.Floats({1, 1, 5}, {1, 0, 7, 8, 9});

  ops_->Rope({.positions = memory_.Ints({1}, {1}), .rotary_dims = 2}, x);

  ExpectClose(memory_.ReadFloats(x), {std::cos(1.0F), std::sin(1.0F), 7, 8, 9}, 1e-6F);
}

TEST_P(RopeTest, TurnsEachTokenByItsOwnPositionAndAllItsHeadsAlike) {
  const TensorView x = memory_.Floats({2, 2, 2}, {1, 0, 0, 1, 1, 0, 2, 0});

  ops_->Rope({.positions = memory_.Ints({2}, {3, 1}), .rotary_dims = 2}, x);

  const float sine = std::sin(1.0F);
  const float cosine = std::cos(1.0F);
  ExpectClose(
      memory_.ReadFloats(x),
      {std::cos(3.0F),
       std::sin(3.0F),
       -std::sin(3.0F),
       std::cos(3.0F),
       cosine,
       sine,
       2 * cosine,
       2 * sine},
      1e-6F
  );
}

TEST_P(RopeTest, ComputesTheAngleInFloat32) {
  // 10000^(-2/6) rounds to 0.046415888 in float32; position 4001 times that rounds to 185.70996,
  // not to the 185.70997 of exact arithmetic.
  const TensorView x = memory_.Floats({1, 1, 6}, {0, 1, 0, 0, 0, 0});

  ops_->Rope({.positions = memory_.Ints({1}, {4001}), .rotary_dims = 6}, x);

  const float angle = 4001.0F * (1.0F / std::pow(10000.0F, 2.0F / 6));
  ExpectClose(memory_.ReadFloats(x), {0, std::cos(angle), 0, 0, std::sin(angle), 0}, 1e-6F);
}

TEST_P(RopeTest, RotatesNothingWhenThereAreNoRotaryDims) {
  const TensorView x = memory_.Floats({1, 1, 3}, {1, 2, 3});

  ops_->Rope({.positions = memory_.Ints({1}, {9}), .rotary_dims = 0}, x);

  EXPECT_THAT(memory_.ReadFloats(x), ElementsAre(1, 2, 3));
}

using RopeDeathTest = RopeTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, RopeDeathTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(RopeDeathTest, RefusesAnOddNumberOfRotaryDims) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TensorView x = memory_.Zeros(DType::kF32, {1, 1, 5});
  const TensorView positions = memory_.Ints({1}, {1});

  EXPECT_DEATH(ops_->Rope({.positions = positions, .rotary_dims = 3}, x), "rotary_dims=3");
}

class RopeAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, RopeAgainstReferenceTest, testing::ValuesIn(FastBackendNames()), BackendTestName
);

TEST_P(RopeAgainstReferenceTest, AgreesForOddSizes) {
  for (const int64_t tokens : OddTokenCounts()) {
    for (const int64_t head_dim : {3, 16, 40, 129}) {
      for (const int64_t rotary_dims : {head_dim / 4 * 2, head_dim / 2 * 2}) {
        SCOPED_TRACE(testing::Message() << tokens << " " << head_dim << " " << rotary_dims);
        const RopeCase shape = {tokens, head_dim, rotary_dims};
        ExpectClose(Rotated(*ops_, shape), Rotated(*reference_, shape));
      }
    }
  }
}

}  // namespace
}  // namespace switchyard
