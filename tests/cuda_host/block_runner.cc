#include "tests/cuda_host/block_runner.h"

#include <algorithm>

#include "base/status.h"
#include "tests/cuda_host/report.h"

namespace switchyard::cuda_host {
namespace {

thread_local ThreadState* current = nullptr;

using Wait = ThreadState::Wait;

std::string Text(const Index3& index) {
  return Concat("(", index.x, ", ", index.y, ", ", index.z, ")");
}

}  // namespace

ThreadState* BlockRunner::Current() {
  return current;
}

std::string DescribeCurrentThread() {
  if (current == nullptr) {
    return "";
  }
  const BlockRunner& runner = *current->runner;
  return Concat(
      runner.launch().name,
      " block ",
      Text(runner.block_index()),
      " thread ",
      Text(current->index),
      ": "
  );
}

void BlockRunner::Run(const LaunchedGrid& launch) {
  launch_ = &launch;
  threads_ = static_cast<int>(launch.block.Count());
  abandoned_ = false;
  if (states_.size() < static_cast<size_t>(threads_)) {
    states_.resize(static_cast<size_t>(threads_));
  }
  warp_epochs_.assign(static_cast<size_t>((threads_ + kWarpThreads - 1) / kWarpThreads), 0);
  for (unsigned z = 0; z < launch.grid.z; ++z) {
    for (unsigned y = 0; y < launch.grid.y; ++y) {
      for (unsigned x = 0; x < launch.grid.x && !abandoned_; ++x) {
        block_index_ = {x, y, z};
        RunBlock();
      }
    }
  }
  current = nullptr;
}

void BlockRunner::RunBlock() {
  shared_.Reset(launch_->dynamic_shared_bytes);
  block_epoch_ = 0;
  const Index3& block = launch_->block;
  for (int i = 0; i < threads_; ++i) {
    ThreadState& thread = states_[static_cast<size_t>(i)];
    thread.runner = this;
    thread.wait = Wait::kRunning;
    thread.linear = i;
    const auto linear = static_cast<unsigned>(i);
    thread.index = {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
  }
  const auto warps = static_cast<int>(warp_epochs_.size());
  while (true) {
    for (int warp = 0; warp < warps && !abandoned_; ++warp) {
      RunWarp(warp);
    }
    if (abandoned_ || AllWait(Wait::kEnded)) {
      break;
    }
    if (!AllWait(Wait::kBarrier)) {
      const auto ended =
          std::count_if(states_.begin(), states_.begin() + threads_, [](auto& state) {
            return state.wait == Wait::kEnded;
          });
      Report(
          Fault::kDivergence,
          Concat(
              launch_->name,
              " block ",
              Text(block_index_),
              ": a barrier was reached by some of ",
              threads_,
              " threads; ",
              ended,
              " had ended"
          )
      );
      abandoned_ = true;
      break;
    }
    ++block_epoch_;
    for (int i = 0; i < threads_; ++i) {
      states_[static_cast<size_t>(i)].wait = Wait::kRunning;
    }
  }
  for (int i = 0; i < threads_; ++i) {  // of a block that was abandoned
    ThreadState& thread = states_[static_cast<size_t>(i)];
    if (thread.fiber != nullptr) {
      free_fibers_.push_back(std::move(thread.fiber));
    }
  }
}

bool BlockRunner::AllWait(Wait wait) const {
  return std::all_of(states_.begin(), states_.begin() + threads_, [wait](const auto& state) {
    return state.wait == wait;
  });
}

void BlockRunner::StartThread(ThreadState& thread) {
  if (free_fibers_.empty()) {
    free_fibers_.push_back(std::make_unique<Fiber>());
  }
  thread.fiber = std::move(free_fibers_.back());
  free_fibers_.pop_back();
  thread.fiber->Start(
      [](void* runner) { static_cast<BlockRunner*>(runner)->launch_->body(); }, this
  );
}

void BlockRunner::RunWarp(int warp) {
  const int first = warp * kWarpThreads;
  const int end = std::min(first + kWarpThreads, threads_);
  do {
    for (int i = first; i < end; ++i) {
      ThreadState& thread = states_[static_cast<size_t>(i)];
      if (thread.wait != Wait::kRunning) {
        continue;
      }
      if (thread.fiber == nullptr) {
        StartThread(thread);
      }
      current = &thread;
      if (thread.fiber->Resume()) {
        thread.wait = Wait::kEnded;
        free_fibers_.push_back(std::move(thread.fiber));
      }
      if (abandoned_) {
        return;
      }
    }
  } while (FinishWarpOperation(first, end));
}

bool BlockRunner::FinishWarpOperation(int first, int end) {
  void* slots[kWarpThreads];
  int waiting = 0;
  bool same = true;
  for (int i = first; i < end; ++i) {
    const ThreadState& thread = states_[static_cast<size_t>(i)];
    if (thread.wait == Wait::kWarp) {
      same =
          same && (waiting == 0 || thread.combine == states_[static_cast<size_t>(first)].combine);
      slots[waiting++] = thread.slot;
    }
  }
  if (waiting == 0) {
    return false;
  }
  if (waiting != kWarpThreads || !same) {
    current = &states_[static_cast<size_t>(first)];
    Report(
        Fault::kDivergence,
        Concat(
            DescribeCurrentThread(),
            "a warp operation was reached by ",
            waiting,
            " of 32 threads",
            same ? "" : ", which do not mean the same one"
        )
    );
    abandoned_ = true;
    return false;
  }
  if (states_[static_cast<size_t>(first)].combine != nullptr) {
    states_[static_cast<size_t>(first)].combine(slots);
  } else {
    ++warp_epochs_[static_cast<size_t>(first / kWarpThreads)];
  }
  for (int i = first; i < end; ++i) {
    states_[static_cast<size_t>(i)].wait = Wait::kRunning;
  }
  return true;
}

void BlockRunner::Barrier() {
  current->wait = Wait::kBarrier;
  current->fiber->Yield();
}

void BlockRunner::WarpTogether(Combine combine, void* slot) {
  current->wait = Wait::kWarp;
  current->combine = combine;
  current->slot = slot;
  current->fiber->Yield();
}

void BlockRunner::Abandon() {
  abandoned_ = true;
  while (true) {
    current->fiber->Yield();
  }
}

}  // namespace switchyard::cuda_host
