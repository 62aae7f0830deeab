#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace switchyard {

// Cores that this process may run on, by its affinity mask: a container may have been given fewer
// than the machine has. At least 1.
int UsableCores();

// Threads that share the chunks of one loop at a time. Chunks are handed out one by one, so a
// thread that the system takes away delays only the chunk it holds. Idle threads spin for some
// microseconds, since verbs follow one another closely, and then sleep. Thread-compatible: one
// thread at a time calls ParallelFor, never from inside a loop body.
class ThreadPool {
 public:
  // `threads` counts the caller: one less is started. RESOURCE_EXHAUSTED when the system refuses a
  // thread. Requires: threads >= 1.
  static StatusOr<std::unique_ptr<ThreadPool>> Create(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end, worker) for consecutive ranges of at most `grain` items that cover [0,
  // items), and returns when all are done. Ranges run on any thread, in any order; `worker` is in
  // [0, threads) and differs between ranges that run at the same time. Allocates nothing. Requires:
  // grain >= 1; the body does not throw.
  template <typename Body>
  void ParallelFor(int64_t items, int64_t grain, Body&& body) {
    using Stored = std::remove_reference_t<Body>;
    const auto call = [](void* stored, int64_t begin, int64_t end, int worker) {
      (*static_cast<Stored*>(stored))(begin, end, worker);
    };
    Run({call, const_cast<void*>(static_cast<const void*>(&body)), items, grain});
  }

 private:
  using Call = void (*)(void* body, int64_t begin, int64_t end, int worker);
  struct Loop {
    Call call = nullptr;
    void* body = nullptr;
    int64_t items = 0;
    int64_t grain = 1;
  };

  ThreadPool() = default;
  void Run(const Loop& loop);
  bool RunOneChunk(int worker);
  void WorkerMain(int worker);
  void WakeWorkers();

  // The loop's number in the high half, its unclaimed chunks in the low half. A chunk is claimed by
  // lowering the low half with compare-and-swap: if that succeeds, the loop was still unfinished,
  // so the fields below, which only change between loops, belong to it.
  alignas(64) std::atomic<uint64_t> claims_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> body_{nullptr};
  std::atomic<int64_t> items_{0};
  std::atomic<int64_t> grain_{1};

  alignas(64) std::atomic<uint32_t> chunks_left_{0};  // unfinished; the caller waits for zero
  alignas(64) std::atomic<uint32_t> wake_count_{0};   // workers sleep until it changes
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace switchyard
