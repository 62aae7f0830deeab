#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/engine/driven_engine.h"

// GCC takes the pair below for a mismatch once it inlines only one of them.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

// Counts every allocation of this program while `is_counting`.
namespace {
std::atomic<bool> is_counting = false;  // NOLINT: operator new has nowhere else to look
std::atomic<int64_t> allocations = 0;   // NOLINT
}  // namespace

void* operator new(size_t bytes) {
  if (is_counting.load(std::memory_order_relaxed)) {
    allocations.fetch_add(1, std::memory_order_relaxed);
  }
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes); memory != nullptr) {
    return memory;
  }
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace switchyard {
namespace {

// Hears everything and keeps nothing.
class QuietSink final : public TokenSink {
 public:
  Verdict OnToken(const TokenEvent& /*event*/) override { return Verdict::kContinue; }
  void OnFinished(const FinishEvent& /*event*/) override {}
};

void AddQuiet(DrivenEngine& engine, uint64_t id, GenerationRequest request) {
  request.sink = std::make_shared<QuietSink>();
  engine.core().Add(*engine.core().Accept(RequestId{id}, std::move(request)));
}

class EngineAllocation : public ::testing::TestWithParam<TinyFamily> {};

TEST_P(EngineAllocation, AllocatesNothingInAHundredDecodeSteps) {
  DrivenEngine engine(
      {.family = GetParam(), .model = {.context_tokens = 200}, .blocks = 256, .device = "cpu"}
  );
  GenerationRequest sampled = GreedyRequest({5, 6, 7}, 150);
  sampled.sampling.temperature = 0.8F;
  sampled.sampling.top_p = 0.9F;
  sampled.sampling.repetition_penalty = 1.2F;
  sampled.sampling.top_logprobs = 3;
  sampled.stopping.min_tokens = 140;
  GenerationRequest restricted = GreedyRequest({8, 9}, 150);
  restricted.sampling.temperature = 1;
  restricted.sampling.typical_p = 0.9F;
  restricted.sampling.no_repeat_ngram_tokens = 3;
  restricted.sampling.bad_words = {{7}, {8, 9}};
  for (int32_t id = 0; id < 40; ++id) {
    restricted.sampling.allowed_token_ids.push_back(id);
  }
  AddQuiet(engine, 1, GreedyRequest({1, 2, 3, 4}, 150));
  AddQuiet(engine, 2, std::move(sampled));
  AddQuiet(engine, 3, std::move(restricted));
  for (int step = 0; step < 10; ++step) {
    ASSERT_TRUE(engine.core().Step());
  }

  is_counting = true;
  bool stepped = true;
  for (int step = 0; step < 100; ++step) {
    stepped = engine.core().Step() && stepped;
  }
  is_counting = false;

  EXPECT_TRUE(stepped);
  EXPECT_EQ(allocations.exchange(0), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Families, EngineAllocation, ::testing::Values(TinyFamily::kJetMoe, TinyFamily::kSwitchHead)
);

}  // namespace
}  // namespace switchyard
