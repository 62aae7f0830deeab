#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace switchyard {

// Which of a set of strings does a text begin with? A sorted list that is narrowed byte by byte, so
// a look-up costs the length of the match times the logarithm of the number of strings. Immutable,
// thread-safe.
class PrefixIndex {
 public:
  struct Match {
    size_t bytes = 0;
    int32_t id = 0;
  };

  PrefixIndex() = default;
  // Requires: the strings differ from each other and none is empty.
  explicit PrefixIndex(std::vector<std::pair<std::string, int32_t>> entries);

  // Every entry that `text` begins with, shortest first.
  std::vector<Match> All(std::string_view text) const;
  std::optional<Match> Longest(std::string_view text) const;

  bool IsEmpty() const { return entries_.empty(); }

 private:
  std::vector<std::pair<std::string, int32_t>> entries_;  // ascending by bytes as unsigned numbers
};

}  // namespace switchyard
