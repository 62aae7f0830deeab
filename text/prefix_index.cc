#include "text/prefix_index.h"

#include <algorithm>

namespace switchyard {
namespace {

// The byte at `depth`, or -1 past the end: a string sorts before all its extensions.
int ByteAt(const std::string& text, size_t depth) {
  return depth < text.size() ? static_cast<unsigned char>(text[depth]) : -1;
}

}  // namespace

PrefixIndex::PrefixIndex(std::vector<std::pair<std::string, int32_t>> entries)
    : entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end());
}

std::vector<PrefixIndex::Match> PrefixIndex::All(std::string_view text) const {
  std::vector<Match> matches;
  auto first = entries_.begin();
  auto last = entries_.end();
  for (size_t depth = 0; depth < text.size() && first != last; ++depth) {
    // All of [first, last) share the first `depth` bytes of the text, so they are ordered by the
    // next byte.
    const int byte = static_cast<unsigned char>(text[depth]);
    first = std::partition_point(first, last, [&](const auto& entry) {
      return ByteAt(entry.first, depth) < byte;
    });
    last = std::partition_point(first, last, [&](const auto& entry) {
      return ByteAt(entry.first, depth) == byte;
    });
    if (first != last && first->first.size() == depth + 1) {
      matches.push_back({.bytes = depth + 1, .id = first->second});
    }
  }
  return matches;
}

std::optional<PrefixIndex::Match> PrefixIndex::Longest(std::string_view text) const {
  const std::vector<Match> matches = All(text);
  return matches.empty() ? std::nullopt : std::optional<Match>(matches.back());
}

}  // namespace switchyard
