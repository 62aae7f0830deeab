#include "engine/largest_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/backend.h"
#include "tests/cuda_host/activity.h"
#include "tests/cuda_host/device_of.h"
#include "tests/cuda_host/streams.h"
#include "tests/engine/driven_engine.h"
#include "tests/support/captured_log.h"

// The KV cache is what the largest steps leave of the device's memory.

namespace switchyard {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kDeviceBytes = int64_t{16} << 20;
constexpr SchedulerLimits kLimits = {.max_step_tokens = 40, .max_running = 4, .block_tokens = 4};
// Four numbers of requests, and tables of 1, 2, 4, 8, 16 and 24 blocks: a context has 96 tokens.
constexpr int64_t kGraphs = 4 * 6;

class LargestStep : public testing::Test {
 protected:
  std::unique_ptr<EngineCore> EngineWith(const EngineOptions& options) {
    StatusOr<std::unique_ptr<EngineCore>> core = Create(options);
    EXPECT_TRUE(core.ok()) << core.status();
    return *std::move(core);
  }
  StatusOr<std::unique_ptr<EngineCore>> Create(const EngineOptions& options) {
    auto model = *LoadTinyModel(TinyFamily::kJetMoe, {}, *ops_);
    return EngineCore::Create(std::move(model), options, Clock::now);
  }

  const DeviceOf device_{kDeviceBytes};
  std::unique_ptr<Ops> ops_ = *MakeOps({.device = "cuda"});
};

TEST_F(LargestStep, LeavesACacheThatTakesAllOfTheRestAndNothingToAllocateLater) {
  const auto core = EngineWith({.limits = kLimits, .kv_cache_percent = 100});
  const int64_t block_bytes = 4 * core->model().kv_layout().BytesPerToken();
  EXPECT_LT(ops_->AvailableBytes(), block_bytes + kGraphs * cuda_host::kGraphBytes);
  cuda_host::TakeActivity();

  for (uint64_t id = 1; id <= 4; ++id) {
    GenerationRequest request = GreedyRequest(Prompt(30), 12);
    request.sampling.repetition_penalty = 1.2F;
    request.sampling.top_logprobs = 20;
    request.sink = std::make_shared<RecordingSink>();
    core->Add(*core->Accept(RequestId{id}, std::move(request)));
  }
  while (core->HasWork()) {
    ASSERT_TRUE(core->Step());
  }

  EXPECT_EQ(cuda_host::TakeActivity().allocations, 0);
  EXPECT_TRUE(ops_->Finish().ok()) << ops_->Finish();
}

TEST_F(LargestStep, LeavesRoomForEveryGraphThatDecodingMayWant) {
  const CapturedLog log;
  const auto core = EngineWith({.limits = kLimits, .kv_cache_percent = 100});
  cuda_host::TakeActivity();

  // Each goes on for longer than the one after it, and so all four numbers of requests come.
  for (uint64_t id = 1; id <= 4; ++id) {
    GenerationRequest request = GreedyRequest(Prompt(3), 90 - 20 * static_cast<int32_t>(id));
    request.sink = std::make_shared<RecordingSink>();
    core->Add(*core->Accept(RequestId{id}, std::move(request)));
  }
  while (core->HasWork()) {
    ASSERT_TRUE(core->Step());
  }

  EXPECT_GE(cuda_host::TakeActivity().graphs_recorded, 6);
  EXPECT_THAT(log.Lines(), Not(Contains(HasSubstr("cuda_graphs_given_up"))));
}

TEST_F(LargestStep, IsTakenOffBeforeThePercentage) {
  const auto whole = EngineWith({.limits = kLimits, .kv_cache_percent = 100})->Load().total_blocks;
  ops_.reset();  // and with it the first model's weights
  ops_ = *MakeOps({.device = "cuda"});
  const auto half = EngineWith({.limits = kLimits, .kv_cache_percent = 50})->Load().total_blocks;

  EXPECT_EQ(half, whole / 2);
}

TEST_F(LargestStep, SaysWithNumbersThatACacheDoesNotFit) {
  const Status status = Create({.limits = kLimits, .kv_cache_bytes = int64_t{15} << 20}).status();

  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(
          HasSubstr("a KV cache of 15728640 bytes does not fit"),
          HasSubstr("steps of 40 tokens take"),
          HasSubstr("give it at most")
      )
  );
}

TEST_F(LargestStep, SaysHowLargeTheStepIsThatDoesNotFit) {
  const Status status = Create({.limits = {.max_step_tokens = 1 << 20}}).status();

  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(
          HasSubstr("the largest step, of 1048576 tokens: "),
          HasSubstr("bytes on the device; it has")
      )
  );
}

TEST_F(LargestStep, DoesNotCount) {
  const auto core = EngineWith({.limits = kLimits, .kv_cache_percent = 50});

  for (const RouterStatistics& router : core->ReadExpertStatistics().routers) {
    EXPECT_EQ(std::accumulate(router.tokens.begin(), router.tokens.end(), int64_t{0}), 0);
    EXPECT_EQ(std::accumulate(router.gate_sum.begin(), router.gate_sum.end(), 0.0), 0);
    EXPECT_EQ(std::accumulate(router.margin_sum.begin(), router.margin_sum.end(), 0.0), 0);
  }
}

}  // namespace
}  // namespace switchyard
