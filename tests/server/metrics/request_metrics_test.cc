#include "server/metrics/request_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;

TEST(RequestMetrics, HasTheBucketsThatAreDocumented) {
  const RequestMetrics metrics;

  EXPECT_THAT(
      metrics.TimeToFirstToken().upper_bounds,
      ElementsAre(
          0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300
      )
  );
  EXPECT_THAT(
      metrics.Duration().upper_bounds,
      ElementsAre(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 1800)
  );
}

TEST(RequestMetrics, TakesTheFirstTokenForItselfAndTheOthersByTheirDistance) {
  RequestMetrics metrics;

  metrics.OnToken({.id = 1, .completion_tokens = 1, .since_previous = microseconds(3000)});
  metrics.OnToken({.id = 1, .completion_tokens = 2, .since_previous = microseconds(900)});
  metrics.OnToken({.id = 1, .completion_tokens = 3, .since_previous = microseconds(1000)});
  metrics.OnToken({.id = 1, .completion_tokens = 4, .since_previous = microseconds(1001)});

  EXPECT_EQ(metrics.GeneratedTokens(), 4);
  EXPECT_EQ(metrics.TimeToFirstToken().sum, 0.003);
  EXPECT_EQ(metrics.InterTokenLatency().upper_bounds[0], 0.001);
  EXPECT_EQ(metrics.InterTokenLatency().counts[0], 2);
  EXPECT_EQ(metrics.InterTokenLatency().counts[1], 1);
}

TEST(RequestMetrics, CountsTokensWithoutATimeAsTokensOnly) {
  RequestMetrics metrics;

  metrics.OnToken({.id = 1, .completion_tokens = 2});

  EXPECT_EQ(metrics.GeneratedTokens(), 1);
  EXPECT_EQ(metrics.InterTokenLatency().sum, 0);
}

TEST(RequestMetrics, CountsRequestsByHowTheyEnded) {
  RequestMetrics metrics;
  FinishEvent event;
  event.reason = FinishReason::kDeadline;
  event.queue_seconds = 0.5;
  event.total_seconds = 2.5;

  metrics.OnRequestEnded(event);

  EXPECT_EQ(metrics.Requests(FinishReason::kDeadline), 1);
  EXPECT_EQ(metrics.Requests(FinishReason::kStop), 0);
  EXPECT_EQ(metrics.Queue().sum, 0.5);
  EXPECT_EQ(metrics.Duration().sum, 2.5);
}

}  // namespace
}  // namespace switchyard
