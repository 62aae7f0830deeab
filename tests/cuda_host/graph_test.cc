#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/device.h"
#include "tests/cuda_host/activity.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"

// Graphs under the stand-in: what they do, and the mistakes with them that it finds.

namespace switchyard {
namespace {

using cuda_host::Fault;
using cuda_host::TakeActivity;
using cuda_host::TakeFault;

constexpr int kThreads = 32;

__global__ void DoubleKernel(Global<float> values) {
  values[threadIdx.x] = values[threadIdx.x] * 2;
}

class Graphs : public testing::Test {
 protected:
  Graphs() {
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    cudaMalloc(&memory_, kThreads * sizeof(float));
    cudaMallocHost(&host_, kThreads * sizeof(float));
    TakeActivity();
  }
  ~Graphs() override {
    cudaFree(memory_);
    cudaFreeHost(host_);
    cudaStreamDestroy(stream_);
  }

  // A graph that doubles the values.
  cudaGraphExec_t Doubling() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
    const Global<float> values(static_cast<float*>(memory_), kThreads);
    Launch(DoubleKernel, dim3{1, 1, 1}, dim3{kThreads, 1, 1}, 0, stream_, values);
    cudaStreamEndCapture(stream_, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    return executable;
  }

  void Put(float value) {
    for (int i = 0; i < kThreads; ++i) {
      static_cast<float*>(host_)[i] = value;
    }
    cudaMemcpyAsync(memory_, host_, kThreads * sizeof(float), cudaMemcpyHostToDevice, stream_);
  }
  float Last() {
    cudaMemcpyAsync(host_, memory_, kThreads * sizeof(float), cudaMemcpyDeviceToHost, stream_);
    cudaStreamSynchronize(stream_);
    return static_cast<float*>(host_)[kThreads - 1];
  }

  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  void* host_ = nullptr;
};

TEST_F(Graphs, DoNothingWhileTheyAreCapturedAndTheirWorkEachTimeTheyAreLaunched) {
  Put(3);
  cudaStreamSynchronize(stream_);
  cudaGraphExec_t graph = Doubling();
  const float captured = Last();

  cudaGraphLaunch(graph, stream_);
  cudaGraphLaunch(graph, stream_);

  EXPECT_EQ(captured, 3);
  EXPECT_EQ(Last(), 12);
  cudaGraphExecDestroy(graph);
}

TEST_F(Graphs, CountAsOneLaunchEach) {
  cudaGraphExec_t graph = Doubling();
  Put(1);
  cudaGraphLaunch(graph, stream_);
  cudaGraphLaunch(graph, stream_);
  cudaStreamSynchronize(stream_);
  cudaStreamSynchronize(stream_);

  EXPECT_EQ(
      TakeActivity(),
      (cuda_host::Activity{
          .uploads = 1, .launches = 1, .graphs_recorded = 1, .graph_launches = 2, .waits = 1})
  );
  cudaGraphExecDestroy(graph);
}

TEST_F(Graphs, MayNotReachMemoryThatWasFreed) {
  cudaGraphExec_t graph = Doubling();
  cudaFree(memory_);
  memory_ = nullptr;

  cudaGraphLaunch(graph, stream_);

  EXPECT_EQ(TakeFault(), Fault::kUseAfterFree);
  cudaGraphExecDestroy(graph);
}

TEST_F(Graphs, MayNotBeCapturedAroundAnAllocation) {
  cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
  void* other = nullptr;
  cudaMalloc(&other, 4);

  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(TakeFault(), Fault::kWrongCapture);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_, &graph);
  cudaGraphDestroy(graph);
}

TEST_F(Graphs, MayNotBeCapturedAroundAWait) {
  cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
  cudaStreamSynchronize(stream_);

  EXPECT_EQ(TakeFault(), Fault::kWrongCapture);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_, &graph);
  cudaGraphDestroy(graph);
}

TEST_F(Graphs, MustHaveBegunBeforeTheyEnd) {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_, &graph);

  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(TakeFault(), Fault::kWrongCapture);
}

}  // namespace
}  // namespace switchyard
