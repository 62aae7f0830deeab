#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/stop_matcher.h"
#include "text/streaming_detokenizer.h"
#include "text/tokenizer.h"

namespace switchyard {

struct CompletionTextOptions {
  std::vector<std::string> stop_strings;
  bool include_stop = false;  // whether the matched stop string is part of the text
  int32_t min_tokens = 0;     // stop strings that end with an earlier token do not count
};

// The text of a growing completion: whole characters only, and nothing of a stop string before it
// is known not to be one. Thread-compatible; one per stream.
class CompletionText {
 public:
  // A null tokenizer makes no text; otherwise it must outlive this. Requires: no stop string is
  // empty.
  CompletionText(const Tokenizer* tokenizer, CompletionTextOptions options);

  // Adds the text of the completion's next token and returns what may go out now. Once
  // MatchedStop() is there, no more may be added.
  std::string Append(int32_t token_id);

  // What is still held when the completion ends otherwise; call once at the end.
  std::string Flush();

  // Which stop string ended the completion.
  const std::optional<std::string>& MatchedStop() const { return matched_stop_; }

 private:
  std::string AppendBeforeMinimum(std::string text);

  const Tokenizer* tokenizer_;
  CompletionTextOptions options_;
  std::optional<StreamingDetokenizer> detokenizer_;
  StopMatcher matcher_;
  std::string unreleased_;  // what matcher_ holds; kept only before the minimum
  int32_t tokens_ = 0;
  std::optional<std::string> matched_stop_;
};

}  // namespace switchyard
