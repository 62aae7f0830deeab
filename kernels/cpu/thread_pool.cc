#include "kernels/cpu/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <system_error>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace switchyard {
namespace {

constexpr int64_t kMaxChunks = std::numeric_limits<uint32_t>::max();
// Longer than the gap between two verbs of a step, short against the time a client notices.
constexpr std::chrono::microseconds kSpinTime{50};
constexpr int kPausesPerClockRead = 64;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls `ready` for kSpinTime; says whether it came true.
template <typename Ready>
bool SpinUntil(const Ready& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int pause = 0; pause < kPausesPerClockRead; ++pause) {
      if (ready()) {
        return true;
      }
      Pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

uint32_t UnclaimedOf(uint64_t claims) {
  return static_cast<uint32_t>(claims);
}

}  // namespace

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    return std::max(CPU_COUNT(&cores), 1);
  }
  // More cores than the set has room for.
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(int threads) {
  CHECK(threads >= 1) << "threads " << threads;
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pool->workers_.reserve(static_cast<size_t>(threads) - 1);
  for (int worker = 1; worker < threads; ++worker) {
    try {
      pool->workers_.emplace_back(&ThreadPool::WorkerMain, pool.get(), worker);
    } catch (const std::system_error& error) {
      return ResourceExhausted(
          "cannot start thread ",
          worker + 1,
          " of ",
          threads,
          ": ",
          error.what(),
          "; use fewer threads or raise the limit on processes"
      );
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_release);
  WakeWorkers();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::Run(const Loop& loop) {
  CHECK(loop.grain >= 1) << "grain " << loop.grain;
  if (loop.items <= 0) {
    return;
  }
  if (workers_.empty() || loop.items <= loop.grain) {
    for (int64_t begin = 0; begin < loop.items; begin += loop.grain) {
      loop.call(loop.body, begin, std::min(begin + loop.grain, loop.items), 0);
    }
    return;
  }
  const int64_t chunks = (loop.items + loop.grain - 1) / loop.grain;
  CHECK(chunks <= kMaxChunks) << loop.items << " items by " << loop.grain;

  call_.store(loop.call, std::memory_order_relaxed);
  body_.store(loop.body, std::memory_order_relaxed);
  items_.store(loop.items, std::memory_order_relaxed);
  grain_.store(loop.grain, std::memory_order_relaxed);
  chunks_left_.store(static_cast<uint32_t>(chunks), std::memory_order_relaxed);
  const uint64_t number = (claims_.load(std::memory_order_relaxed) >> 32) + 1;
  claims_.store((number << 32) | static_cast<uint64_t>(chunks), std::memory_order_release);
  WakeWorkers();

  while (RunOneChunk(0)) {
  }
  const auto finished = [this] { return chunks_left_.load(std::memory_order_acquire) == 0; };
  if (SpinUntil(finished)) {
    return;
  }
  for (uint32_t left = chunks_left_.load(std::memory_order_acquire); left != 0;
       left = chunks_left_.load(std::memory_order_acquire)) {
    chunks_left_.wait(left, std::memory_order_acquire);
  }
}

bool ThreadPool::RunOneChunk(int worker) {
  uint64_t claims = claims_.load(std::memory_order_acquire);
  while (UnclaimedOf(claims) != 0) {
    const Loop loop = {
        call_.load(std::memory_order_relaxed),
        body_.load(std::memory_order_relaxed),
        items_.load(std::memory_order_relaxed),
        grain_.load(std::memory_order_relaxed)};
    // Release keeps the four loads above before the claim.
    if (!claims_.compare_exchange_weak(
            claims, claims - 1, std::memory_order_acq_rel, std::memory_order_acquire
        )) {
      continue;
    }
    const int64_t chunks = (loop.items + loop.grain - 1) / loop.grain;
    const int64_t begin = (chunks - UnclaimedOf(claims)) * loop.grain;
    loop.call(loop.body, begin, std::min(begin + loop.grain, loop.items), worker);
    if (chunks_left_.fetch_sub(1, std::memory_order_acq_rel) == 1 && worker != 0) {
      chunks_left_.notify_one();
    }
    return true;
  }
  return false;
}

void ThreadPool::WorkerMain(int worker) {
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t wake_count = wake_count_.load(std::memory_order_acquire);
    if (RunOneChunk(worker)) {
      continue;
    }
    const auto something_to_do = [this] {
      return UnclaimedOf(claims_.load(std::memory_order_relaxed)) != 0 ||
             stopping_.load(std::memory_order_relaxed);
    };
    if (!SpinUntil(something_to_do)) {
      wake_count_.wait(wake_count, std::memory_order_acquire);
    }
  }
}

void ThreadPool::WakeWorkers() {
  wake_count_.fetch_add(1, std::memory_order_release);
  wake_count_.notify_all();
}

}  // namespace switchyard
