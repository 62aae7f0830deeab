#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::ElementsAre;

class StoreKvTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Backends, StoreKvTest, testing::ValuesIn(BackendNames()), BackendTestName);

TEST_P(StoreKvTest, WritesEachTokenToItsSlotAndNothingElse) {
  // Two blocks of two tokens; keys of two channels, values of one.
  const StoreKvArgs args = {
      .key = memory_.Floats({2, 1, 2}, {1, 2, 3, 4}),
      .value = memory_.Floats({2, 1, 1}, {5, 6}),
      .slots = memory_.Ints({2}, {3, 0}),
      .key_cache = memory_.Floats({2, 2, 1, 2}, {9, 9, 9, 9, 9, 9, 9, 9}),
      .value_cache = memory_.Floats({2, 2, 1, 1}, {8, 8, 8, 8}),
  };

  ops_->StoreKv(args);

  EXPECT_THAT(memory_.ReadFloats(args.key_cache), ElementsAre(3, 4, 9, 9, 9, 9, 1, 2));
  EXPECT_THAT(memory_.ReadFloats(args.value_cache), ElementsAre(6, 8, 8, 5));
}

TEST_P(StoreKvTest, KeepsTheHeadsOfATokenTogether) {
  const StoreKvArgs args = {
      .key = memory_.Floats({1, 3, 1}, {1, 2, 3}),
      .value = memory_.Floats({1, 3, 1}, {4, 5, 6}),
      .slots = memory_.Ints({1}, {1}),
      .key_cache = memory_.Zeros(DType::kF32, {1, 2, 3, 1}),
      .value_cache = memory_.Zeros(DType::kF32, {1, 2, 3, 1}),
  };

  ops_->StoreKv(args);

  EXPECT_THAT(memory_.ReadFloats(args.key_cache), ElementsAre(0, 0, 0, 1, 2, 3));
  EXPECT_THAT(memory_.ReadFloats(args.value_cache), ElementsAre(0, 0, 0, 4, 5, 6));
}

using StoreKvDeathTest = StoreKvTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, StoreKvDeathTest, testing::ValuesIn(HostBackendNames()), BackendTestName
);

TEST_P(StoreKvDeathTest, RefusesASlotBeyondTheCache) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const StoreKvArgs args = {
      .key = memory_.Floats({1, 1, 1}, {1}),
      .value = memory_.Floats({1, 1, 1}, {1}),
      .slots = memory_.Ints({1}, {2}),
      .key_cache = memory_.Zeros(DType::kF32, {1, 2, 1, 1}),
      .value_cache = memory_.Zeros(DType::kF32, {1, 2, 1, 1}),
  };

  EXPECT_DEATH(ops_->StoreKv(args), "slot 2 of 2");
}

}  // namespace
}  // namespace switchyard
