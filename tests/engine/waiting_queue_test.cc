#include "engine/waiting_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/engine/make_sequence.h"

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr Clock::time_point kStart{seconds(1000)};

std::unique_ptr<Sequence> Arrived(uint64_t arrival, int32_t priority, seconds at) {
  auto sequence = MakeSequence({.prompt = {1, 2}});
  sequence->id = RequestId{arrival};
  sequence->arrival = arrival;
  sequence->request.priority = priority;
  sequence->submitted_at = kStart + at;
  return sequence;
}

std::vector<uint64_t> OrderAt(WaitingQueue& queue, seconds at) {
  std::vector<uint64_t> order;
  queue.VisitInOrder(kStart + at, [&order](Sequence& sequence) {
    order.push_back(sequence.arrival);
    return true;
  });
  return order;
}

TEST(WaitingQueue, IsFirstComeFirstServedWithinAPriority) {
  WaitingQueue queue(seconds(10));
  for (const uint64_t arrival : {1, 2, 3}) {
    queue.Push(Arrived(arrival, 0, seconds(arrival)));
  }

  EXPECT_THAT(OrderAt(queue, seconds(100)), ElementsAre(1, 2, 3));
}

TEST(WaitingQueue, PutsAHigherPriorityFirst) {
  WaitingQueue queue(seconds(10));
  queue.Push(Arrived(1, -1, seconds(0)));
  queue.Push(Arrived(2, 0, seconds(0)));
  queue.Push(Arrived(3, 5, seconds(0)));

  EXPECT_THAT(OrderAt(queue, seconds(0)), ElementsAre(3, 2, 1));
}

TEST(WaitingQueue, RaisesAPriorityByOneForEachAgeing) {
  WaitingQueue queue(seconds(10));
  queue.Push(Arrived(1, 0, seconds(0)));
  queue.Push(Arrived(2, 2, seconds(20)));

  EXPECT_THAT(OrderAt(queue, seconds(20)), ElementsAre(1, 2)) << "0 + 2, and came first";

  WaitingQueue fresh(seconds(10));
  fresh.Push(Arrived(1, 0, seconds(1)));
  fresh.Push(Arrived(2, 2, seconds(20)));

  EXPECT_THAT(OrderAt(fresh, seconds(20)), ElementsAre(2, 1)) << "19 s are one level only";
}

TEST(WaitingQueue, AgesNobodyWhenToldSo) {
  WaitingQueue queue(milliseconds(0));
  queue.Push(Arrived(1, 0, seconds(0)));
  queue.Push(Arrived(2, 1, seconds(0)));

  EXPECT_THAT(OrderAt(queue, seconds(1000000)), ElementsAre(2, 1));
}

TEST(WaitingQueue, TakesOneThatComesBackToItsPlaceByArrival) {
  WaitingQueue queue(seconds(10));
  queue.Push(Arrived(1, 0, seconds(0)));
  queue.Push(Arrived(2, 0, seconds(0)));
  queue.Push(Arrived(3, 0, seconds(0)));
  std::unique_ptr<Sequence> second = queue.Take(RequestId{2});
  queue.Take(RequestId{1});

  queue.Push(std::move(second));

  EXPECT_THAT(OrderAt(queue, seconds(0)), ElementsAre(2, 3));
  EXPECT_EQ(queue.size(), 2);
}

TEST(WaitingQueue, StopsVisitingWhenToldSo) {
  WaitingQueue queue(seconds(10));
  queue.Push(Arrived(1, 0, seconds(0)));
  queue.Push(Arrived(2, 1, seconds(0)));
  int visited = 0;

  queue.VisitInOrder(kStart, [&visited](Sequence&) {
    ++visited;
    return false;
  });

  EXPECT_EQ(visited, 1);
}

TEST(WaitingQueue, RemovesWhatHasFinished) {
  WaitingQueue queue(seconds(10));
  queue.Push(Arrived(1, 0, seconds(0)));
  queue.Push(Arrived(2, 4, seconds(0)));
  queue.ForEach([](Sequence& sequence) {
    if (sequence.arrival == 2) {
      sequence.state = SequenceState::kFinished;
    }
  });

  queue.RemoveFinished();

  EXPECT_THAT(OrderAt(queue, seconds(0)), ElementsAre(1));
  EXPECT_EQ(queue.size(), 1);
}

}  // namespace
}  // namespace switchyard
