#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/active_requests.h"
#include "engine/make_sequences.h"
#include "engine/scheduler.h"

namespace switchyard {
namespace {

class CountingSink final : public TokenSink {
 public:
  Verdict OnToken(const TokenEvent& /*event*/) override { return Verdict::kContinue; }
  void OnFinished(const FinishEvent& /*event*/) override { ++calls; }
  int calls = 0;
  int completions = 1;
};

// What the cache must hold for a token: a digest of all tokens up to it, and of who may share them.
using Digest = uint64_t;

Digest Extended(Digest before, int32_t token) {
  return (before ^ static_cast<uint64_t>(token + 1)) * 0x9E3779B97F4A7C15 + 0x1234567;
}

Digest StartOf(const Sequence& sequence) {
  const PrefixSharing& sharing = sequence.request.prefix_sharing;
  return sharing.enabled ? std::hash<std::string>()(sharing.salt)
                         : Extended(0x55, static_cast<int32_t>(sequence.id));
}

struct Scenario {
  SchedulerLimits limits;
  int32_t total_blocks = 0;
  int32_t requests = 0;
};

// Random requests through queue, scheduler, block pool and prefix cache as the engine drives them,
// with a cache of digests in the place of keys and values.
class Traffic {
 public:
  explicit Traffic(const Scenario& scenario)
      : limits_(scenario.limits),
        scheduler_(scenario.limits),
        requests_(
            scenario.total_blocks,
            {.limits = scenario.limits, .ageing = std::chrono::milliseconds(200)}
        ),
        cache_(
            static_cast<size_t>(scenario.total_blocks) *
            static_cast<size_t>(scenario.limits.block_tokens)
        ) {}

  void Arrive() {
    const int32_t most = requests_.pool().TotalBlocks() * limits_.block_tokens;
    GenerationRequest request;
    // Few different tokens and beginnings, so that many share a prefix.
    const int32_t prompt = Draw(1, std::max(1, std::min(70, most - 1)));
    const int32_t kind = Draw(0, 3);
    for (int32_t i = 0; i < prompt; ++i) {
      request.prompt.push_back(i < 50 ? (i * kind) % 5 : Draw(0, 1));
    }
    request.stopping.max_tokens = Draw(1, std::min(60, most - prompt));
    request.completions = Draw(0, 5) == 0 ? Draw(2, 4) : 1;
    request.priority = Draw(0, 9) == 0 ? Draw(-2, 2) : 0;
    request.prefix_sharing = {.enabled = Draw(0, 7) != 0, .salt = Draw(0, 3) == 0 ? "salt" : ""};
    if (Draw(0, 9) == 0) {
      request.deadline = now_ + std::chrono::milliseconds(Draw(0, 400));
    }
    sinks_.push_back(std::make_shared<CountingSink>());
    request.sink = sinks_.back();
    sinks_.back()->completions = request.completions;
    auto sequence = MakeSequences(
        RequestId{sinks_.size()},
        std::move(request),
        {.context_tokens = most, .block_tokens = limits_.block_tokens, .now = now_}
    );
    priorities_[sinks_.size()] = sequence->request.priority;
    requests_.Add(std::move(sequence));
  }

  void CancelOne() { requests_.Cancel(RequestId{static_cast<uint64_t>(Draw(1, arrived()))}, now_); }

  void Step() {
    now_ += std::chrono::milliseconds(1);
    requests_.ExpireDeadlines(now_);
    requests_.Describe(now_, scheduler_, state_);
    scheduler_.Plan(state_, plan_);
    SCOPED_TRACE(plan_.ToString());
    CheckBudget();
    CheckAdmissionOrder();
    CheckOldestAdvances();
    requests_.Apply(plan_, now_, work_);
    EXPECT_GE(requests_.pool().AvailableBlocks(), 0);
    Compute();
    for (const SequenceSlice& slice : work_.slices) {
      requests_.Computed(slice);
      if (slice.planned.samples) {
        Sample(*slice.sequence);
      }
    }
    requests_.RemoveFinished();
  }

  bool idle() const { return requests_.empty(); }
  EngineLoad load() const { return requests_.Load(); }
  int32_t arrived() const { return static_cast<int32_t>(sinks_.size()); }
  const std::vector<std::shared_ptr<CountingSink>>& sinks() const { return sinks_; }
  int32_t Draw(int32_t least, int32_t most) {
    return std::uniform_int_distribution<int32_t>(least, most)(random_);
  }

 private:
  void CheckBudget() {
    int32_t tokens = 0;
    std::set<RequestId> seen;
    for (const PlannedSlice& slice : plan_.slices) {
      EXPECT_GE(slice.tokens, 1);
      EXPECT_TRUE(seen.insert(slice.id).second) << "two slices of one request";
      tokens += slice.tokens;
    }
    EXPECT_LE(tokens, limits_.max_step_tokens);
    EXPECT_LE(
        state_.running.size() + plan_.admitted.size() - plan_.preempted.size(),
        static_cast<size_t>(limits_.max_running)
    );
  }

  // Those that wait longest in their priority; nobody is passed over.
  void CheckAdmissionOrder() {
    for (size_t i = 0; i < plan_.admitted.size(); ++i) {
      EXPECT_EQ(plan_.admitted[i], state_.waiting[i].id);
    }
    std::map<int32_t, uint64_t> last_arrivals;
    for (const ScheduledRequest& waiting : state_.waiting) {
      uint64_t& last = last_arrivals[priorities_[waiting.arrival]];
      EXPECT_LE(last, waiting.arrival) << "not first come, first served";
      last = waiting.arrival;
    }
  }

  void CheckOldestAdvances() {
    if (state_.running.empty()) {
      EXPECT_EQ(plan_.slices.empty(), state_.waiting.empty()) << "an idle engine takes somebody";
      return;
    }
    const auto oldest = std::ranges::min_element(state_.running, {}, &ScheduledRequest::arrival);
    EXPECT_TRUE(std::ranges::any_of(plan_.slices, [&](const PlannedSlice& slice) {
      return slice.id == oldest->id;
    })) << "the oldest stands still";
  }

  Digest& At(const Sequence& sequence, int32_t position) {
    const auto block =
        static_cast<size_t>(sequence.blocks[static_cast<size_t>(position / limits_.block_tokens)]);
    return cache_
        [block * static_cast<size_t>(limits_.block_tokens) +
         static_cast<size_t>(position % limits_.block_tokens)];
  }

  // As the model would: copies, writes every slice, then reads all that each token attends to.
  void Compute() {
    const auto size = static_cast<int64_t>(limits_.block_tokens);
    for (const BlockCopy& copy : work_.copies) {
      std::copy_n(
          cache_.begin() + static_cast<int64_t>(copy.from) * size,
          size,
          cache_.begin() + static_cast<int64_t>(copy.to) * size
      );
    }
    for (const SequenceSlice& slice : work_.slices) {
      Write(*slice.sequence, slice.planned);
    }
    for (const SequenceSlice& slice : work_.slices) {
      const Sequence& sequence = *slice.sequence;
      Digest digest = StartOf(sequence);
      for (int32_t i = 0; i < slice.planned.first_token + slice.planned.tokens; ++i) {
        digest = Extended(digest, sequence.tokens[static_cast<size_t>(i)]);
        ASSERT_EQ(At(sequence, i), digest)
            << "request " << static_cast<uint64_t>(sequence.id) << " token " << i;
      }
    }
  }

  void Write(const Sequence& sequence, const PlannedSlice& planned) {
    Digest digest = StartOf(sequence);
    for (int32_t i = 0; i < planned.first_token + planned.tokens; ++i) {
      digest = Extended(digest, sequence.tokens[static_cast<size_t>(i)]);
      if (i >= planned.first_token) {
        const BlockId block = sequence.blocks[static_cast<size_t>(i / limits_.block_tokens)];
        EXPECT_FALSE(requests_.pool().IsShared(block)) << "writes to what others read";
        At(sequence, i) = digest;
      }
    }
  }

  void Sample(Sequence& sequence) {
    requests_.ReleaseFollowers(sequence);
    sequence.Append(Draw(0, 1));
    if (sequence.KnownTokens() >= sequence.max_total_tokens || Draw(0, 60) == 0) {
      FinishEvent event = sequence.Finish(now_);
      event.reason = FinishReason::kLength;
      requests_.Finish(sequence, event);
    }
  }

  SchedulerLimits limits_;
  Scheduler scheduler_;
  ActiveRequests requests_;
  std::vector<Digest> cache_;  // [blocks, block_tokens]
  Clock::time_point now_{std::chrono::seconds(1)};
  std::mt19937_64 random_{17};
  SchedulerState state_;
  StepPlan plan_;
  StepWork work_;
  std::vector<std::shared_ptr<CountingSink>> sinks_;
  std::map<uint64_t, int32_t> priorities_;  // by arrival
};

class ActiveRequestsProperties : public ::testing::TestWithParam<Scenario> {};

TEST_P(ActiveRequestsProperties, HoldOverRandomArrivalsCancelsDeadlinesAndPreemptions) {
  const Scenario& scenario = GetParam();
  Traffic traffic(scenario);

  while (traffic.arrived() < scenario.requests && !HasFailure()) {
    for (int32_t count = traffic.Draw(0, 3); count > 0; --count) {
      traffic.Arrive();
    }
    if (traffic.arrived() > 0 && traffic.Draw(0, 4) == 0) {
      traffic.CancelOne();
    }
    // Now and then the queue drains, so that both full and idle engines are seen.
    for (int32_t steps = traffic.Draw(1, traffic.Draw(1, 30)); steps > 0; --steps) {
      traffic.Step();
    }
  }
  for (int32_t steps = 0; !traffic.idle() && !HasFailure(); ++steps) {
    ASSERT_LT(steps, 1000000) << "somebody waits for ever";
    traffic.Step();
  }

  EXPECT_EQ(traffic.load().available_blocks, scenario.total_blocks);
  EXPECT_EQ(traffic.load().running_requests + traffic.load().waiting_requests, 0);
  for (const auto& sink : traffic.sinks()) {
    ASSERT_EQ(sink->calls, sink->completions);
  }
  if (scenario.total_blocks < 20 && scenario.limits.max_running > 2) {
    EXPECT_GT(traffic.load().preempted_total, 0) << "the scenario is to run out of blocks";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios,
    ActiveRequestsProperties,
    ::testing::Values(
        Scenario{
            {.max_step_tokens = 32, .max_running = 8, .block_tokens = 4, .growth_tokens = 8},
            64,
            60000},
        Scenario{
            {.max_step_tokens = 3, .max_running = 16, .block_tokens = 16, .growth_tokens = 1},
            9,
            10000},
        Scenario{
            {.max_step_tokens = 64, .max_running = 5, .block_tokens = 8, .growth_tokens = 0},
            17,
            20000},
        Scenario{{.max_step_tokens = 512, .max_running = 64, .block_tokens = 1}, 150, 10000},
        Scenario{{.max_step_tokens = 7, .max_running = 2, .block_tokens = 5}, 1, 2000}
    )
);

}  // namespace
}  // namespace switchyard
