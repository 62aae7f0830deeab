#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/device.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"

// Each mistake that the stand-in is there to find, made once on purpose.

namespace switchyard {

// Not in the unnamed namespace: reports give the names that the program exports.
__global__ void WriteNextKernel(Global<float> out) {
  out[threadIdx.x + 1] = 1;
}

namespace {

using cuda_host::CurrentMessage;
using cuda_host::Fault;
using cuda_host::TakeFault;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kThreads = 64;

class Detection : public testing::Test {
 protected:
  Detection() { cudaMalloc(&memory_, kThreads * sizeof(float)); }
  ~Detection() override { cudaFree(memory_); }

  Global<float> Floats(int64_t count = kThreads) const {
    return {static_cast<float*>(memory_), count};
  }
  template <typename... Arguments>
  cudaError_t Run(void (*kernel)(Arguments...), Arguments... arguments) {
    Launch(kernel, dim3{1, 1, 1}, dim3{kThreads, 1, 1}, 0, nullptr, arguments...);
    return cudaStreamSynchronize(nullptr);
  }

  void* memory_ = nullptr;
};

__global__ void WriteOwnKernel(Global<float> out) {
  out[threadIdx.x] = static_cast<float>(threadIdx.x);
}

TEST_F(Detection, IsSilentAboutAKernelThatIsRight) {
  EXPECT_EQ(Run(WriteOwnKernel, Floats()), cudaSuccess);

  EXPECT_EQ(TakeFault(), Fault::kNone);
}

TEST_F(Detection, NamesKernelBlockAndThreadOfAnAccessBeyondAView) {
  EXPECT_EQ(Run(WriteNextKernel, Floats()), cudaErrorLaunchFailure);

  EXPECT_THAT(
      CurrentMessage(),
      AllOf(
          HasSubstr("WriteNextKernel"),
          HasSubstr("block (0, 0, 0) thread (63, 0, 0)"),
          HasSubstr("element 64 of a view of 64")
      )
  );
  EXPECT_EQ(TakeFault(), Fault::kOutOfRange);
}

TEST_F(Detection, FindsAViewThatIsLargerThanItsAllocation) {
  Floats(kThreads + 1);

  EXPECT_EQ(TakeFault(), Fault::kOutOfRange);
}

TEST_F(Detection, FindsAViewOfHostMemory) {
  float host = 0;
  const Global<float> view(&host, 1);

  EXPECT_EQ(TakeFault(), Fault::kOutOfRange);
}

TEST_F(Detection, FindsUseAfterFree) {
  void* other = nullptr;
  cudaMalloc(&other, 4);
  cudaFree(other);
  const Global<float> view(static_cast<float*>(other), 1);

  EXPECT_EQ(TakeFault(), Fault::kUseAfterFree);
}

TEST_F(Detection, FindsMemoryFreedTwice) {
  void* other = nullptr;
  cudaMalloc(&other, 4);
  cudaFree(other);
  cudaFree(other);

  EXPECT_EQ(TakeFault(), Fault::kWrongFree);
}

TEST_F(Detection, ListsWhatWasNotFreed) {
  void* other = nullptr;
  cudaMalloc(&other, 12345);

  EXPECT_THAT(cuda_host::LiveAllocations(), HasSubstr("12345 bytes"));
  cudaFree(other);
  EXPECT_THAT(cuda_host::LiveAllocations(), Not(HasSubstr("12345 bytes")));
}

__global__ void LoadFromOneKernel(Global<const float> in, Global<float> out) {
  out[0] = LoadFour(in, 1).x;
}

TEST_F(Detection, FindsAWideLoadThatIsNotAligned) {
  const Global<const float> in(static_cast<const float*>(memory_), kThreads);
  EXPECT_EQ(Run(LoadFromOneKernel, in, Floats()), cudaErrorLaunchFailure);

  EXPECT_EQ(TakeFault(), Fault::kMisaligned);
}

__global__ void ReadUnwrittenSharedKernel(Global<float> out) {
  SHARED_ARRAY(float, shared, kThreads);
  if (threadIdx.x > 0) {
    shared[threadIdx.x] = 1;
  }
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x];
}

TEST_F(Detection, FindsAReadOfUninitialisedSharedMemory) {
  EXPECT_EQ(Run(ReadUnwrittenSharedKernel, Floats()), cudaErrorLaunchFailure);

  EXPECT_EQ(TakeFault(), Fault::kUninitialisedShared);
}

__global__ void ReadNeighbourWithoutBarrierKernel(Global<float> out) {
  SHARED_ARRAY(float, shared, kThreads);
  shared[threadIdx.x] = 1;
  // Thread 0 runs first here, so all that later threads read has been written: only the order is
  // missing.
  out[threadIdx.x] = shared[threadIdx.x / 2];
}

TEST_F(Detection, FindsAMissingBarrierWhateverTheOrderOfTheThreads) {
  EXPECT_EQ(Run(ReadNeighbourWithoutBarrierKernel, Floats()), cudaErrorLaunchFailure);

  EXPECT_EQ(TakeFault(), Fault::kRace);
}

__global__ void OverwriteWithoutBarrierKernel(Global<float> out) {
  SHARED_ARRAY(float, shared, kThreads);
  shared[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
  shared[threadIdx.x] = 2;
}

TEST_F(Detection, FindsSharedMemoryOverwrittenWhileOthersMayReadIt) {
  EXPECT_EQ(Run(OverwriteWithoutBarrierKernel, Floats()), cudaErrorLaunchFailure);

  EXPECT_EQ(TakeFault(), Fault::kRace);
}

__global__ void ExchangeInsideAWarpKernel(Global<float> out) {
  SHARED_ARRAY(float, shared, kThreads);
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = shared[threadIdx.x ^ 1];
}

TEST_F(Detection, TakesAWarpBarrierForEnoughInsideAWarp) {
  EXPECT_EQ(Run(ExchangeInsideAWarpKernel, Floats()), cudaSuccess);

  EXPECT_EQ(TakeFault(), Fault::kNone);
}

__global__ void HalfBarrierKernel(Global<float> out) {
  if (threadIdx.x < kThreads / 2) {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}

TEST_F(Detection, FindsABarrierThatNotAllThreadsReach) {
  EXPECT_EQ(Run(HalfBarrierKernel, Floats()), cudaErrorLaunchFailure);

  EXPECT_THAT(CurrentMessage(), HasSubstr("32 had ended"));
  EXPECT_EQ(TakeFault(), Fault::kDivergence);
}

__global__ void HalfShuffleKernel(Global<float> out) {
  float value = 1;
  if (threadIdx.x % 2 == 0) {
    value = ShuffleXor(value, 1);
  }
  out[threadIdx.x] = value;
}

TEST_F(Detection, FindsAShuffleThatNotAllLanesReach) {
  EXPECT_EQ(Run(HalfShuffleKernel, Floats()), cudaErrorLaunchFailure);

  EXPECT_THAT(CurrentMessage(), HasSubstr("16 of 32 threads"));
  EXPECT_EQ(TakeFault(), Fault::kDivergence);
}

TEST_F(Detection, RefusesMoreThreadsThanADeviceHas) {
  Launch(WriteOwnKernel, dim3{1, 1, 1}, dim3{1025, 1, 1}, 0, nullptr, Floats());

  EXPECT_THAT(CurrentMessage(), HasSubstr("1025 threads"));
  EXPECT_EQ(TakeFault(), Fault::kLaunchLimit);
}

TEST_F(Detection, RefusesAnEmptyGridAndOneThatIsTooHigh) {
  Launch(WriteOwnKernel, dim3{0, 1, 1}, dim3{1, 1, 1}, 0, nullptr, Floats());
  EXPECT_EQ(TakeFault(), Fault::kLaunchLimit);

  Launch(WriteOwnKernel, dim3{1, 65536, 1}, dim3{1, 1, 1}, 0, nullptr, Floats());
  EXPECT_EQ(TakeFault(), Fault::kLaunchLimit);
}

TEST_F(Detection, RefusesSharedMemoryThatTheKernelDidNotAskFor) {
  constexpr size_t kBytes = size_t{49} * 1024;
  Launch(WriteNextKernel, dim3{1, 1, 1}, dim3{1, 1, 1}, kBytes, nullptr, Floats());
  EXPECT_EQ(TakeFault(), Fault::kLaunchLimit);

  EXPECT_EQ(AllowSharedBytes(WriteNextKernel, kBytes), cudaSuccess);
  Launch(WriteNextKernel, dim3{1, 1, 1}, dim3{1, 1, 1}, kBytes, nullptr, Floats());
  EXPECT_EQ(TakeFault(), Fault::kNone);
}

TEST_F(Detection, RefusesMoreSharedMemoryThanADeviceHas) {
  AllowSharedBytes(WriteOwnKernel, size_t{228} * 1024);

  EXPECT_EQ(TakeFault(), Fault::kLaunchLimit);
}

TEST_F(Detection, FindsACopyOfTheWrongKind) {
  void* host = nullptr;
  cudaMallocHost(&host, 4);

  cudaMemcpyAsync(memory_, host, 4, cudaMemcpyDeviceToHost, nullptr);
  EXPECT_EQ(TakeFault(), Fault::kWrongCopy);
  cudaMemcpyAsync(memory_, host, 4, cudaMemcpyHostToDevice, nullptr);
  EXPECT_EQ(TakeFault(), Fault::kNone);
  cudaFreeHost(host);
}

TEST_F(Detection, FindsAnAsynchronousCopyOfMemoryThatIsNotPinned) {
  float host = 0;
  cudaMemcpyAsync(memory_, &host, 4, cudaMemcpyHostToDevice, nullptr);

  EXPECT_EQ(TakeFault(), Fault::kWrongCopy);
}

TEST_F(Detection, RunsWorkOnlyWhenSomebodyWaits) {
  float* host = nullptr;
  cudaMallocHost(reinterpret_cast<void**>(&host), 4);
  *host = 1;
  cudaMemcpyAsync(memory_, host, 4, cudaMemcpyHostToDevice, nullptr);
  *host = 2;  // too early: the copy takes this
  cudaMemcpyAsync(host, memory_, 4, cudaMemcpyDeviceToHost, nullptr);
  cudaStreamSynchronize(nullptr);

  EXPECT_EQ(*host, 2);
  cudaFreeHost(host);
}

TEST_F(Detection, StopsHostCodeThatFollowsADevicePointer) {
  EXPECT_DEATH(*static_cast<volatile float*>(memory_) = 1, "");
}

TEST_F(Detection, DoesNothingMoreAfterAFault) {
  Run(WriteNextKernel, Floats());

  EXPECT_EQ(Run(WriteOwnKernel, Floats()), cudaErrorLaunchFailure);
  EXPECT_EQ(TakeFault(), Fault::kOutOfRange);
}

}  // namespace
}  // namespace switchyard
