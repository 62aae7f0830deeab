#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/engine/driven_engine.h"
#include "tests/support/test_devices.h"

namespace switchyard {
namespace {

struct Completion {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Completion&) const = default;
};

// Sixteen requests that share neither prompt nor length nor sampling.
GenerationRequest VariedRequest(int32_t number) {
  GenerationRequest request;
  const int32_t prompt_tokens = 1 + (number * 7) % 29;
  for (int32_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back((number * 11 + i * i * 3 + i) % 61);
  }
  SamplingParameters& sampling = request.sampling;
  sampling.temperature = number % 4 == 0 ? 0 : 0.5F + 0.1F * static_cast<float>(number);
  sampling.top_k = number % 3 == 0 ? 0 : 3 + number;
  sampling.top_p = number % 2 == 0 ? 1 : 0.9F;
  sampling.min_p = number % 5 == 1 ? 0.02F : 0;
  sampling.typical_p = number % 3 == 2 ? 0.8F : 1;
  sampling.repetition_penalty = number % 3 == 1 ? 1.3F : 1;
  sampling.presence_penalty = number % 4 == 2 ? 0.5F : 0;
  sampling.frequency_penalty = number % 4 == 3 ? 0.25F : 0;
  sampling.seed = static_cast<uint64_t>(number) * 1000003;
  sampling.logit_bias = {{number, 1.5F}};
  sampling.no_repeat_ngram_tokens = number % 4;
  sampling.bad_words = {{number + 20}, {number + 40, number + 41}};
  if (number % 5 == 3) {
    for (int32_t id = number % 2; id < 61; id += 2) {
      sampling.allowed_token_ids.push_back(id);
    }
  }
  sampling.top_logprobs = number % 3;
  request.stopping.max_tokens = 3 + (number * 5) % 23;
  request.stopping.min_tokens = number % 6;
  request.stopping.ignore_eos = number % 2 == 1;
  return request;
}

constexpr int32_t kRequests = 16;

Completion CompletionOf(const RecordingSink& sink) {
  return {.tokens = sink.tokens, .logprobs = sink.logprobs};
}

class BatchInvariance
    : public ::testing::TestWithParam<std::tuple<TinyFamily, std::string, int32_t>> {
 protected:
  static DrivenEngine::Settings SettingsWith(int32_t max_step_tokens) {
    return {
        .family = std::get<0>(GetParam()),
        .limits = {.max_step_tokens = max_step_tokens, .max_running = 16, .block_tokens = 4},
        .blocks = 256,
        .device = DeviceOf(std::get<1>(GetParam()))};
  }
};

TEST_P(BatchInvariance, GivesEachOfSixteenRequestsWhatItGetsAloneInOneChunk) {
  const int32_t max_step_tokens = std::get<2>(GetParam());
  std::vector<Completion> alone;
  for (int32_t number = 0; number < kRequests; ++number) {
    DrivenEngine engine(SettingsWith(512));
    const auto sink = engine.Add(VariedRequest(number));
    engine.RunAll();
    alone.push_back(CompletionOf(*sink));
  }
  DrivenEngine engine(SettingsWith(max_step_tokens));
  std::vector<std::shared_ptr<RecordingSink>> sinks;

  // Half come while the others are being decoded.
  for (int32_t number = 0; number < kRequests; ++number) {
    sinks.push_back(engine.Add(VariedRequest(number)));
    if (number >= kRequests / 2) {
      engine.core().Step();
    }
  }
  engine.RunAll();

  for (int32_t number = 0; number < kRequests; ++number) {
    EXPECT_EQ(CompletionOf(*sinks[static_cast<size_t>(number)]), alone[static_cast<size_t>(number)])
        << "request " << number;
  }
  EXPECT_TRUE(engine.all_blocks_are_free());
}

std::string NameOfCase(
    const ::testing::TestParamInfo<std::tuple<TinyFamily, std::string, int32_t>>& test
) {
  const auto& [family, device, max_step_tokens] = test.param;
  return std::string(family == TinyFamily::kJetMoe ? "JetMoe" : "SwitchHead") + "_" + device + "_" +
         std::to_string(max_step_tokens);
}

INSTANTIATE_TEST_SUITE_P(
    FamiliesBackendsAndChunks,
    BatchInvariance,
    ::testing::Combine(
        ::testing::Values(TinyFamily::kJetMoe, TinyFamily::kSwitchHead),
        ::testing::ValuesIn(BackendNames()),
        ::testing::Values(1, 3, 512)
    ),
    NameOfCase
);

}  // namespace
}  // namespace switchyard
