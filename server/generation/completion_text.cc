#include "server/generation/completion_text.h"

#include <utility>

namespace switchyard {

// Before the minimum the matcher includes the stop string in what it releases, because there it is
// ordinary text.
CompletionText::CompletionText(const Tokenizer* tokenizer, CompletionTextOptions options)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      matcher_(options_.stop_strings, options_.include_stop || options_.min_tokens > 1) {
  if (tokenizer_ != nullptr) {
    detokenizer_.emplace(*tokenizer_);
  }
}

std::string CompletionText::Append(int32_t token_id) {
  ++tokens_;
  // A model may have more embeddings than its tokenizer has tokens; the surplus has no text.
  const bool has_text = tokenizer_ != nullptr && token_id < tokenizer_->VocabularySize();
  std::string text = has_text ? detokenizer_->Append(token_id) : std::string();
  if (tokens_ < options_.min_tokens) {
    return AppendBeforeMinimum(std::move(text));
  }
  if (tokens_ == options_.min_tokens && tokens_ > 1) {
    text.insert(0, matcher_.Flush());
    unreleased_.clear();
    matcher_ = StopMatcher(options_.stop_strings, options_.include_stop);
  }
  StopMatcher::Released released = matcher_.Append(text);
  if (released.matched) {
    matched_stop_ = options_.stop_strings[*released.matched];
  }
  return std::move(released.text);
}

// A match ends the matcher, so the text after it goes through a new one: it may hold the beginning
// of a stop string that ends behind the minimum.
std::string CompletionText::AppendBeforeMinimum(std::string text) {
  std::string out;
  while (true) {
    unreleased_ += text;
    const StopMatcher::Released released = matcher_.Append(text);
    out += released.text;
    unreleased_.erase(0, released.text.size());
    if (!released.matched) {
      return out;
    }
    matcher_ = StopMatcher(options_.stop_strings, /*include_stop=*/true);
    text = std::exchange(unreleased_, std::string());
  }
}

std::string CompletionText::Flush() {
  // In this order: what the matcher holds came first.
  std::string text = matcher_.Flush();
  if (detokenizer_) {
    text += detokenizer_->Flush();
  }
  return text;
}

}  // namespace switchyard
