#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/backend.h"
#include "tests/cuda_host/device_of.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"
#include "tests/support/ops_memory.h"

// What the CUDA backend does when the device fails it.

namespace switchyard {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::unique_ptr<Ops> MakeCuda() {
  StatusOr<std::unique_ptr<Ops>> ops = MakeOps({.device = "cuda"});
  EXPECT_TRUE(ops.ok()) << ops.status();
  return *std::move(ops);
}

TEST(CudaOps, FallsBackToTheCpuOnAutoWhereThereIsNoDevice) {
  cuda_host::SetDeviceExists(false);
  const StatusOr<std::unique_ptr<Ops>> ops = MakeOps({.device = "auto", .threads = 1});
  const Status wanted = MakeOps({.device = "cuda"}).status();
  cuda_host::SetDeviceExists(true);

  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_STREQ((*ops)->Name(), "cpu");
  EXPECT_EQ(wanted.code(), StatusCode::kUnavailable);
}

TEST(CudaOps, SaysWithNumbersWhichWeightDoesNotFit) {
  const DeviceOf small(1000);
  const std::unique_ptr<Ops> ops = MakeCuda();
  OpsMemory memory(*ops);

  memory.AddWeight({.shape = {16, 32}, .values = std::vector<float>(512)});
  const Status status = ops->Finish();

  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr("test.weight"), HasSubstr("2048 bytes"), HasSubstr("992 bytes available"))
  );
}

TEST(CudaOps, RefusesToAllocateAfterAWeightThatDidNotFit) {
  const DeviceOf small(1000);
  const std::unique_ptr<Ops> ops = MakeCuda();
  OpsMemory memory(*ops);

  memory.AddWeight({.shape = {16, 32}, .values = std::vector<float>(512)});

  EXPECT_EQ(ops->Allocate(4).status().code(), StatusCode::kResourceExhausted);
}

TEST(CudaOps, KeepsAFaultUntilFinishAndDoesNothingMore) {
  const std::unique_ptr<Ops> ops = MakeCuda();
  OpsMemory memory(*ops);
  const Weight table = memory.AddWeight(
      {.role = WeightRole::kEmbedding, .shape = {2, 3}, .values = std::vector<float>(6)}
  );
  const TensorView out = memory.Zeros(DType::kF32, {1, 3});
  ops->Embed(table, memory.Ints({1}, {2}), 1, out);  // a token outside of the vocabulary

  const Status status = ops->Finish();
  ops->Add(out, out);

  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(status), HasSubstr("EmbedKernel"));
  EXPECT_EQ(ops->Finish(), status);
  EXPECT_EQ(cuda_host::TakeFault(), cuda_host::Fault::kOutOfRange);
}

}  // namespace
}  // namespace switchyard
