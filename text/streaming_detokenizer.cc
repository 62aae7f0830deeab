#include "text/streaming_detokenizer.h"

#include <string_view>

#include "text/utf8.h"

namespace switchyard {

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

std::string StreamingDetokenizer::Append(int32_t id) {
  // What is held is always the valid beginning of one character, so the loop decides about it
  // first.
  held_ += tokenizer_.TokenBytes(id);
  std::string_view rest = held_;
  std::string released;
  while (!rest.empty()) {
    const Utf8Step step = NextUtf8(rest);
    if (step.kind == Utf8Kind::kIncomplete) {
      break;
    }
    released +=
        step.kind == Utf8Kind::kCharacter ? rest.substr(0, step.bytes) : kReplacementCharacter;
    rest.remove_prefix(step.bytes);
  }
  held_.erase(0, held_.size() - rest.size());
  return released;
}

std::string StreamingDetokenizer::Flush() {
  std::string released = ReplaceInvalidUtf8(held_);
  held_.clear();
  return released;
}

}  // namespace switchyard
