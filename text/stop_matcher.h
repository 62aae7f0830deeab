#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace switchyard {

// Watches released text for stop strings. Text that could still turn out to be the beginning of one
// is held back, so that no part of a stop string ever leaves. Takes time proportional to the text,
// times the number of stop strings, however long they are. Thread-compatible; one per stream.
class StopMatcher {
 public:
  struct Released {
    std::string text;               // may go out now
    std::optional<size_t> matched;  // index into the stop strings; nothing may be appended after it
  };

  // Requires: no stop string is empty. `include_stop`: whether the matched string itself is
  // released.
  StopMatcher(std::vector<std::string> stop_strings, bool include_stop);

  // When several stop strings match, the one that ends first wins; of those, the longest. Text
  // after the match is dropped. If stop strings and text are whole UTF-8 characters, so is what is
  // released.
  Released Append(std::string_view text);

  // What is held although no stop string came of it; call once at the end.
  std::string Flush();

 private:
  // Knuth-Morris-Pratt over one stop string.
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // [text.size()] longest border of the first i + 1 bytes
    size_t progress = 0;           // how many bytes of `text` the end of the stream spells
  };

  static Pattern MakePattern(std::string text);
  static void Advance(Pattern& pattern, char byte);
  std::optional<size_t> LongestComplete() const;

  std::vector<Pattern> patterns_;
  bool include_stop_ = false;
  std::string held_;  // the longest progress of any pattern, in bytes
};

}  // namespace switchyard
