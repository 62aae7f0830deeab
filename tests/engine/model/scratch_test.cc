#include "engine/model/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "kernels/backend.h"

namespace switchyard {
namespace {

class ScratchTest : public testing::Test {
 protected:
  ScratchTest() : ops_(*MakeOps({.device = "reference", .threads = 1})) {}

  std::unique_ptr<Ops> ops_;
};

TEST_F(ScratchTest, GivesBackWhatAScopeTook) {
  Scratch scratch = *Scratch::Create(*ops_, 256);
  const TensorView first = scratch.Floats({3});
  const void* inner = nullptr;
  {
    const Scratch::Scope scope(scratch);
    inner = scratch.Floats({5}).data();
  }

  const TensorView again = scratch.Floats({5});

  EXPECT_EQ(again.data(), inner);
  EXPECT_NE(again.data(), first.data());
}

TEST_F(ScratchTest, RoundsEveryTensorUpToACacheLine) {
  EXPECT_EQ(ScratchBytesFor(DType::kF32, {1}), 64);
  EXPECT_EQ(ScratchBytesFor(DType::kF32, {16}), 64);
  EXPECT_EQ(ScratchBytesFor(DType::kI32, {17}), 128);
  EXPECT_EQ(ScratchBytesFor(DType::kF32, {0, 8}), 0);
}

TEST_F(ScratchTest, FitsExactlyWhatItWasMadeFor) {
  Scratch scratch = *Scratch::Create(
      *ops_, ScratchBytesFor(DType::kF32, {7}) + ScratchBytesFor(DType::kI32, {33})
  );

  scratch.Floats({7});
  const TensorView last = scratch.Take(DType::kI32, {33});

  EXPECT_EQ(last.elements(), 33);
}

TEST_F(ScratchTest, StopsTheProcessWhenTheModelAsksForMoreThanItSaid) {
  Scratch scratch = *Scratch::Create(*ops_, 64);

  EXPECT_DEATH(scratch.Floats({17}), "scratch has 64 bytes");
}

}  // namespace
}  // namespace switchyard
