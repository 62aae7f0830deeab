#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine_core.h"
#include "tests/engine/recording_sink.h"
#include "tests/support/tiny_model.h"

namespace switchyard {

// An engine on a tiny model that a test drives step by step, with a clock that it sets by hand.
class DrivenEngine {
 public:
  struct Settings {
    TinyFamily family = TinyFamily::kJetMoe;
    TinyModelOptions model = {};
    SchedulerLimits limits = {.max_step_tokens = 16, .max_running = 4, .block_tokens = 4};
    int64_t blocks = 64;
    std::string device = "reference";
    bool measures_steps = false;  // it takes as long as a test
  };
  explicit DrivenEngine(const Settings& settings);
  // On a backend of the test's own instead of settings.device.
  DrivenEngine(const Settings& settings, std::unique_ptr<Ops> ops);

  // Submits with the sink that the request has.
  void AddAsItIs(GenerationRequest request);
  // Submits with a sink of its own. The request must be one that the engine takes.
  std::shared_ptr<RecordingSink> Add(GenerationRequest request);
  // Steps until nothing is left.
  void RunAll();

  RequestId last_id() const { return RequestId{ids_}; }
  bool all_blocks_are_free() const {
    return core().Load().available_blocks == core().Load().total_blocks;
  }
  EngineCore& core() { return *core_; }
  const EngineCore& core() const { return *core_; }

  Clock::time_point now = Clock::time_point(std::chrono::seconds(1000));

 private:
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<EngineCore> core_;
  uint64_t ids_ = 0;
};

// A prompt of this many tokens, in a fixed order; the first 30 have no 60.
std::vector<int32_t> Prompt(size_t tokens);

// What a greedy run on the default tiny model gives, for tests that need a token it will choose.
std::vector<int32_t> GreedyTokens(std::vector<int32_t> prompt, int32_t max_tokens);

// A greedy request that does not end by itself before max_tokens.
GenerationRequest GreedyRequest(std::vector<int32_t> prompt, int32_t max_tokens);

// Options whose KV cache has `blocks` blocks for `layout`.
EngineOptions OptionsWithBlocks(
    const KvLayout& layout, const SchedulerLimits& limits, int64_t blocks
);

}  // namespace switchyard
