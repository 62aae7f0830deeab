#include "server/periodic_thread.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/mutex.h"

namespace switchyard {
namespace {

class Counter {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  void WaitFor(int count) {
    const MutexLock lock(mutex_);
    while (count_ < count) {
      changed_.Wait(mutex_);
    }
  }
  int count() {
    const MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(PeriodicThread, RunsItsJobAgainAndAgain) {
  Counter counter;
  const PeriodicThread thread(std::chrono::milliseconds(1), [&counter] { counter.Add(); });

  counter.WaitFor(3);
}

TEST(PeriodicThread, EndsInTheMiddleOfItsPause) {
  Counter counter;
  {
    const PeriodicThread thread(std::chrono::hours(1), [&counter] { counter.Add(); });
  }

  EXPECT_EQ(counter.count(), 0);
}

}  // namespace
}  // namespace switchyard
