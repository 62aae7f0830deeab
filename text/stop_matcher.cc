#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace switchyard {

StopMatcher::StopMatcher(std::vector<std::string> stop_strings, bool include_stop)
    : include_stop_(include_stop) {
  patterns_.reserve(stop_strings.size());
  for (std::string& stop_string : stop_strings) {
    CHECK(!stop_string.empty()) << "an empty stop string would match everywhere";
    patterns_.push_back(MakePattern(std::move(stop_string)));
  }
}

StopMatcher::Pattern StopMatcher::MakePattern(std::string text) {
  Pattern pattern{.text = std::move(text), .fallback = {0}};
  size_t border = 0;
  for (size_t i = 1; i < pattern.text.size(); ++i) {
    while (border > 0 && pattern.text[i] != pattern.text[border]) {
      border = pattern.fallback[border - 1];
    }
    border += pattern.text[i] == pattern.text[border] ? 1 : 0;
    pattern.fallback.push_back(border);
  }
  return pattern;
}

// Requires: the pattern is not complete; a complete one ends the stream.
void StopMatcher::Advance(Pattern& pattern, char byte) {
  while (pattern.progress > 0 && pattern.text[pattern.progress] != byte) {
    pattern.progress = pattern.fallback[pattern.progress - 1];
  }
  pattern.progress += pattern.text[pattern.progress] == byte ? 1 : 0;
}

std::optional<size_t> StopMatcher::LongestComplete() const {
  std::optional<size_t> longest;
  for (size_t i = 0; i < patterns_.size(); ++i) {
    const bool complete = patterns_[i].progress == patterns_[i].text.size();
    if (complete && (!longest || patterns_[i].text.size() > patterns_[*longest].text.size())) {
      longest = i;
    }
  }
  return longest;
}

StopMatcher::Released StopMatcher::Append(std::string_view text) {
  for (const char byte : text) {
    held_.push_back(byte);
    for (Pattern& pattern : patterns_) {
      Advance(pattern, byte);
    }
    const std::optional<size_t> matched = LongestComplete();
    if (matched) {
      held_.resize(held_.size() - (include_stop_ ? 0 : patterns_[*matched].text.size()));
      return {.text = Flush(), .matched = matched};
    }
  }
  // Everything before the longest begun stop string can no longer be part of any.
  size_t kept_bytes = 0;
  for (const Pattern& pattern : patterns_) {
    kept_bytes = std::max(kept_bytes, pattern.progress);
  }
  Released released{.text = held_.substr(0, held_.size() - kept_bytes), .matched = std::nullopt};
  held_.erase(0, released.text.size());
  return released;
}

std::string StopMatcher::Flush() {
  for (Pattern& pattern : patterns_) {
    pattern.progress = 0;
  }
  return std::exchange(held_, std::string());
}

}  // namespace switchyard
