#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/float16.h"

// What a warp does together, against what the PTX manual says.

namespace switchyard {
namespace {

using testing::Each;

template <typename... Arguments>
std::vector<float> RunWarp(
    void (*kernel)(Global<float>, Arguments...), int count, Arguments... arguments
) {
  const auto bytes = static_cast<size_t>(count) * sizeof(float);
  void* device = nullptr;
  void* host = nullptr;
  cudaMalloc(&device, bytes);
  cudaMallocHost(&host, bytes);
  Launch(
      kernel,
      dim3{1, 1, 1},
      dim3{32, 1, 1},
      0,
      nullptr,
      Global<float>(static_cast<float*>(device), count),
      arguments...
  );
  cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, nullptr);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  const auto* values = static_cast<const float*>(host);
  std::vector<float> result(values, values + count);
  cudaFree(device);
  cudaFreeHost(host);
  return result;
}

__global__ void ShuffleXorKernel(Global<float> out, int mask) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = static_cast<float>(ShuffleXor(lane * 10, mask));
}

TEST(Warp, ShufflesBetweenLanesThatDifferInTheMask) {
  const std::vector<float> received = RunWarp(ShuffleXorKernel, 32, 5);

  EXPECT_EQ(received[0], 50);
  EXPECT_EQ(received[5], 0);
  EXPECT_EQ(received[31], 260);
}

__global__ void ShuffleTwiceKernel(Global<float> out) {
  const int lane = static_cast<int>(threadIdx.x);
  const int next = ShuffleFrom(lane, lane + 1);
  out[lane] = static_cast<float>(ShuffleFrom(next, lane + 1));
}

TEST(Warp, KeepsShufflesApartThatFollowEachOther) {
  const std::vector<float> received = RunWarp(ShuffleTwiceKernel, 32);

  EXPECT_EQ(received[0], 2);
  EXPECT_EQ(received[30], 0);
  EXPECT_EQ(received[31], 1);
}

__global__ void BallotKernel(Global<float> out) {
  out[threadIdx.x] = Ballot(threadIdx.x == 1 || threadIdx.x == 4) == 18 ? 1.0F : 0.0F;
}

TEST(Warp, CollectsVotesInTheBitsOfTheLanes) {
  EXPECT_THAT(RunWarp(BallotKernel, 32), Each(1.0F));
}

__global__ void WarpSumKernel(Global<float> out) {
  const auto lane = static_cast<float>(threadIdx.x);
  float values[2] = {lane, 1};
  WarpSum(values);
  out[threadIdx.x * 2] = values[0];
  out[threadIdx.x * 2 + 1] = values[1];
}

TEST(Warp, SumsSeveralValuesOverTheLanes) {
  const std::vector<float> sums = RunWarp(WarpSumKernel, 64);

  for (size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(sums[2 * lane], 496) << lane;
    EXPECT_EQ(sums[2 * lane + 1], 32) << lane;
  }
}

__global__ void ButterflyKernel(Global<float> out) {
  // In this order 2^25 and -2^25 meet in the first step; in any other the ones would be lost.
  float values[1] = {threadIdx.x == 3 ? 33554432.0F : (threadIdx.x == 19 ? -33554432.0F : 1.0F)};
  WarpSum(values);
  out[threadIdx.x] = values[0];
}

TEST(Warp, AddsLanesAHalfWarpApartFirst) {
  EXPECT_THAT(RunWarp(ButterflyKernel, 32), Each(30.0F));
}

__device__ uint32_t Pair(float low, float high) {
  return FloatToBf16(low) | uint32_t{FloatToBf16(high)} << 16;
}

// a[i][k] = i + 1 where k == i, else 0; b[k][j] = 10 k + j; so d[i][j] = (i + 1) (10 i + j) + 1000.
__global__ void MultiplyAccumulateKernel(Global<float> out) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  const auto a_at = [](int i, int k) { return i == k ? static_cast<float>(i + 1) : 0.0F; };
  const auto b_at = [](int k, int j) { return static_cast<float>(10 * k + j); };
  const uint32_t a[4] = {
      Pair(a_at(g, 2 * t), a_at(g, 2 * t + 1)),
      Pair(a_at(g + 8, 2 * t), a_at(g + 8, 2 * t + 1)),
      Pair(a_at(g, 2 * t + 8), a_at(g, 2 * t + 9)),
      Pair(a_at(g + 8, 2 * t + 8), a_at(g + 8, 2 * t + 9))};
  const uint32_t b[2] = {
      Pair(b_at(2 * t, g), b_at(2 * t + 1, g)), Pair(b_at(2 * t + 8, g), b_at(2 * t + 9, g))};
  float d[4] = {1000, 1000, 1000, 1000};
  MultiplyAccumulate(d, a, b);
  out[g * 8 + 2 * t] = d[0];
  out[g * 8 + 2 * t + 1] = d[1];
  out[(g + 8) * 8 + 2 * t] = d[2];
  out[(g + 8) * 8 + 2 * t + 1] = d[3];
}

TEST(Warp, MultipliesFragmentsAsTheTensorCoreLaysThemOut) {
  const std::vector<float> product = RunWarp(MultiplyAccumulateKernel, 128);

  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      const int expected = (i + 1) * (10 * i + j) + 1000;
      EXPECT_EQ(product[static_cast<size_t>(i * 8 + j)], static_cast<float>(expected)) << i << j;
    }
  }
}

}  // namespace
}  // namespace switchyard
