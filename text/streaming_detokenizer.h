#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace switchyard {

// Turns a growing sequence of tokens into text, releasing only whole UTF-8 characters: the bytes of
// a character that is spread over several tokens are held until it is complete. All that Append and
// Flush gave, put together, is ReplaceInvalidUtf8 of all token bytes put together.
// Thread-compatible; one per stream.
class StreamingDetokenizer {
 public:
  // `tokenizer` must outlive this.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer);

  // The characters that became complete with this token; may be empty. Bytes that can never become
  // a character come out as U+FFFD. Requires: id is in the vocabulary.
  std::string Append(int32_t id);

  // What is still held, as one U+FFFD for the incomplete character; call once at the end.
  std::string Flush();

 private:
  const Tokenizer& tokenizer_;
  std::string held_;  // at most the first 3 bytes of one character
};

}  // namespace switchyard
