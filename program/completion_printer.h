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

// Writes a completion to standard output while it is produced. Thread-compatible.
class CompletionPrinter {
 public:
  explicit CompletionPrinter(CompletionFormat format) : format_(format) {}

  void OnDelta(const v1::Delta& delta);
  void OnFinished(const v1::Finished& finished);

 private:
  CompletionFormat format_;
  bool has_text_ = false;
  std::vector<v1::TokenLogprobs> logprobs_;
};

// "64 tokens at 812 tokens/s, first token after 4.1 ms, 9 prompt tokens, finished by max_tokens"
std::string DescribeCompletion(const v1::Finished& finished);

}  // namespace switchyard
