#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace switchyard {

// A stretch of text in the course of byte pair encoding.
struct BpeSymbol {
  int32_t id = -1;         // -1: the vocabulary does not have it
  size_t begin = 0;        // bytes [begin, begin + bytes) of the text
  size_t bytes = 0;        // 0 once it was merged into its left neighbour
  bool is_frozen = false;  // never merged
};

// What two neighbours become, and at which cost; the cheapest merge goes first, of equals the
// leftmost.
struct BpeMerge {
  int32_t id = 0;
  double cost = 0;
};

// Symbols form a linked list inside the vector, so a merge moves nothing, and candidates wait in a
// priority queue. A word can be a whole prompt (SentencePiece does not split text into words
// first), so rescanning after each merge would let one request occupy a thread for minutes.
//
// Merges neighbours until no rule applies and removes what was merged away. `find_merge(left,
// right)` returns std::optional<BpeMerge> and must depend on its arguments only. Takes O(n log n)
// for n symbols.
template <typename FindMerge>
void MergeSymbols(std::vector<BpeSymbol>& symbols, const FindMerge& find_merge) {
  struct Candidate {
    BpeMerge merge;
    size_t left = 0;
    bool operator<(const Candidate& other) const {  // std::priority_queue serves the largest
      return merge.cost != other.merge.cost ? merge.cost > other.merge.cost : left > other.left;
    }
  };
  const size_t end = symbols.size();
  std::vector<size_t> previous(end);
  std::vector<size_t> next(end);
  std::priority_queue<Candidate> queue;
  const auto find = [&](size_t left) -> std::optional<BpeMerge> {
    const size_t right = next[left];
    if (right == end || symbols[left].is_frozen || symbols[right].is_frozen) {
      return std::nullopt;
    }
    return find_merge(symbols[left], symbols[right]);
  };
  const auto offer = [&](size_t left) {
    if (const std::optional<BpeMerge> merge = find(left)) {
      queue.push({.merge = *merge, .left = left});
    }
  };

  for (size_t i = 0; i < end; ++i) {
    previous[i] = i == 0 ? end : i - 1;
    next[i] = i + 1;
  }
  for (size_t i = 0; i < end; ++i) {
    offer(i);
  }
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    // Entries are not removed when a merge elsewhere outdates them; they are recognised here.
    const std::optional<BpeMerge> current =
        symbols[top.left].bytes == 0 ? std::nullopt : find(top.left);
    if (!current || current->id != top.merge.id) {
      continue;
    }
    const size_t right = next[top.left];
    symbols[top.left].id = top.merge.id;
    symbols[top.left].bytes += symbols[right].bytes;
    symbols[right].bytes = 0;
    next[top.left] = next[right];
    if (next[right] != end) {
      previous[next[right]] = top.left;
    }
    if (previous[top.left] != end) {
      offer(previous[top.left]);
    }
    offer(top.left);
  }
  std::erase_if(symbols, [](const BpeSymbol& symbol) { return symbol.bytes == 0; });
}

}  // namespace switchyard
