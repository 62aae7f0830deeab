#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/token_sink.h"

namespace switchyard {

// Keeps what the sink of a request with several completions hears, by completion.
class CompletionsSink final : public TokenSink {
 public:
  struct Completion {
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;
    std::vector<int32_t> prompt_tokens;  // those that were scored
    std::vector<float> prompt_logprobs;
    std::vector<std::vector<TokenLogprobValue>> prompt_tops;
    std::optional<FinishEvent> finished;
    int32_t finished_calls = 0;
  };

  void OnPromptToken(const TokenEvent& event) override;
  Verdict OnToken(const TokenEvent& event) override;
  void OnFinished(const FinishEvent& event) override;

  std::map<int32_t, Completion> completions;
};

}  // namespace switchyard
