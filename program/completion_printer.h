#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

enum class CompletionFormat : uint8_t {
  kText,  // the text as it comes; log-probabilities, if any, as a table after it
  kIds,   // token ids, a space between them
  kJson,  // one JSON object a line for each event of the stream
};

// Writes completions to standard output: a single one while it is produced; several, whose pieces
// come mixed, one after the other at the end. Thread-compatible.
class CompletionPrinter {
 public:
  CompletionPrinter(CompletionFormat format, bool has_several)
      : format_(format), has_several_(has_several) {}

  void OnPromptLogprobs(const v1::PromptLogprobs& logprobs);
  void OnDelta(const v1::Delta& delta);
  void OnFinished(const v1::Finished& finished);

 private:
  struct Completion {
    std::string output;  // what has not been written
    bool has_output = false;
    std::vector<v1::TokenLogprobs> logprobs;
  };

  CompletionFormat format_;
  bool has_several_;
  std::vector<v1::TokenLogprobs> prompt_logprobs_;
  std::vector<Completion> completions_{1};
};

// "64 tokens at 812 tokens/s, first token after 4.1 ms, 9 prompt tokens, finished by max_tokens"
std::string DescribeCompletion(const v1::Finished& finished);

}  // namespace switchyard
