#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_host/fiber.h"
#include "tests/cuda_host/shared_memory.h"

// Runs the blocks of a grid one after the other, the threads of a block as fibers between barriers.

namespace switchyard::cuda_host {

inline constexpr int kWarpThreads = 32;

struct Index3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;

  int64_t Count() const { return int64_t{x} * y * z; }
};

// What all lanes of a warp do together. Each lane leaves pointers in `slots`; the last one to
// arrive runs `combine` over all 32.
using Combine = void (*)(void* const* slots);

class BlockRunner;

struct ThreadState {
  enum class Wait : uint8_t { kRunning, kBarrier, kWarp, kEnded };

  BlockRunner* runner = nullptr;
  std::unique_ptr<Fiber> fiber;
  Wait wait = Wait::kRunning;
  int linear = 0;  // in the block
  Index3 index;
  Combine combine = nullptr;
  void* slot = nullptr;
};

struct LaunchedGrid {
  std::function<void()> body;  // one thread
  std::string name;
  Index3 grid;
  Index3 block;
  int64_t dynamic_shared_bytes = 0;
};

class BlockRunner {
 public:
  // Stops at the first fault.
  void Run(const LaunchedGrid& launch);

  // The rest is for the thread that runs.
  static ThreadState* Current();
  const LaunchedGrid& launch() const { return *launch_; }
  Index3 block_index() const { return block_index_; }
  SharedMemory& shared() { return shared_; }
  int warp_epoch(int thread) const {
    return warp_epochs_[static_cast<size_t>(thread / kWarpThreads)];
  }
  int block_epoch() const { return block_epoch_; }

  void Barrier();
  // `combine` null: only the barrier of the warp, which orders its memory too.
  void WarpTogether(Combine combine, void* slot);
  [[noreturn]] void Abandon();

 private:
  void RunBlock();
  void StartThread(ThreadState& thread);
  void RunWarp(int warp);
  // True when all its lanes wait for it and have been let go.
  bool FinishWarpOperation(int first, int end);
  bool AllWait(ThreadState::Wait wait) const;

  const LaunchedGrid* launch_ = nullptr;
  Index3 block_index_;
  int threads_ = 0;
  std::vector<ThreadState> states_;
  std::vector<std::unique_ptr<Fiber>> free_fibers_;
  std::vector<int> warp_epochs_;
  int block_epoch_ = 0;
  bool abandoned_ = false;
  SharedMemory shared_;
};

// The thread that runs, or null outside of a kernel.
std::string DescribeCurrentThread();

}  // namespace switchyard::cuda_host
