#include "kernels/cpu/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace switchyard {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Pair;

std::unique_ptr<ThreadPool> MakePool(int threads) {
  StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(threads);
  CHECK(pool.ok()) << MessageOf(pool.status());
  return *std::move(pool);
}

TEST(ThreadPool, CountsTheCallerAsAThread) {
  EXPECT_EQ(MakePool(1)->threads(), 1);
  EXPECT_EQ(MakePool(3)->threads(), 3);
}

TEST(ThreadPool, RunsEachItemOnce) {
  const std::unique_ptr<ThreadPool> pool = MakePool(4);
  std::vector<std::atomic<int>> runs(1001);

  pool->ParallelFor(1001, 7, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      runs[static_cast<size_t>(i)].fetch_add(1);
    }
  });

  EXPECT_THAT(std::vector<int>(runs.begin(), runs.end()), Each(1));
}

TEST(ThreadPool, CutsTheItemsAtMultiplesOfTheGrain) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<ThreadPool> pool = MakePool(threads);
    std::vector<std::pair<int64_t, int64_t>> ranges(3);

    pool->ParallelFor(10, 4, [&](int64_t begin, int64_t end, int) {
      ranges[static_cast<size_t>(begin / 4)] = {begin, end};
    });

    EXPECT_THAT(ranges, ElementsAre(Pair(0, 4), Pair(4, 8), Pair(8, 10))) << threads;
  }
}

TEST(ThreadPool, CallsNothingWithoutItems) {
  const std::unique_ptr<ThreadPool> pool = MakePool(2);
  std::atomic<int> calls{0};

  pool->ParallelFor(0, 1, [&](int64_t, int64_t, int) { calls.fetch_add(1); });

  EXPECT_EQ(calls.load(), 0);
}

TEST(ThreadPool, RunsOneChunkOnTheCaller) {
  const std::unique_ptr<ThreadPool> pool = MakePool(4);
  const std::thread::id caller = std::this_thread::get_id();
  std::thread::id runner;
  int worker = -1;

  pool->ParallelFor(5, 5, [&](int64_t, int64_t, int number) {
    runner = std::this_thread::get_id();
    worker = number;
  });

  EXPECT_EQ(runner, caller);
  EXPECT_EQ(worker, 0);
}

TEST(ThreadPool, GivesChunksThatRunTogetherDifferentWorkerNumbers) {
  const std::unique_ptr<ThreadPool> pool = MakePool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> clashes{0};

  pool->ParallelFor(2000, 1, [&](int64_t, int64_t, int worker) {
    std::atomic<int>& mine = inside[static_cast<size_t>(worker)];
    if (mine.fetch_add(1) != 0) {
      clashes.fetch_add(1);
    }
    mine.fetch_sub(1);
  });

  EXPECT_EQ(clashes.load(), 0);
}

TEST(ThreadPool, LetsTheOthersTakeTheChunksOfAThreadThatIsHeldUp) {
  const std::unique_ptr<ThreadPool> pool = MakePool(2);
  std::atomic<int> finished{0};

  // Whoever takes the first chunk holds it until the other thread has done all the rest.
  pool->ParallelFor(20, 1, [&](int64_t begin, int64_t, int) {
    while (begin == 0 && finished.load() < 19) {
      std::this_thread::yield();
    }
    finished.fetch_add(1);
  });

  EXPECT_EQ(finished.load(), 20);
}

TEST(ThreadPool, ShowsTheCallerWhatTheChunksWrote) {
  const std::unique_ptr<ThreadPool> pool = MakePool(3);
  std::vector<int64_t> values(64);
  int64_t wrong = 0;

  // Many short loops in a row: a late thread meets the next loop instead of its own.
  for (int64_t round = 0; round < 3000; ++round) {
    pool->ParallelFor(64, 3, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        values[static_cast<size_t>(i)] = round;
      }
    });
    wrong += 64 - std::count(values.begin(), values.end(), round);
  }

  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, StopsWithThreadsThatNeverWorked) {
  for (int round = 0; round < 50; ++round) {
    MakePool(3);
  }
}

}  // namespace
}  // namespace switchyard
