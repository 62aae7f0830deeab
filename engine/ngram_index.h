#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace switchyard {

// Where each run of n - 1 tokens of one sequence stood before: what forbidding repeated n-grams
// needs. Keeps no tokens; every method gets those of the sequence. Adding a token takes O(n) and
// allocates nothing; looking up takes as many steps as there are earlier places. Thread-compatible.
class NgramIndex {
 public:
  // Starts with `tokens` and has room for `max_tokens` in all. Requires: ngram_tokens >= 1.
  void Start(int32_t ngram_tokens, std::span<const int32_t> tokens, int64_t max_tokens);

  // Takes note of the last of `tokens`. Requires: the others were added before.
  void AddLast(std::span<const int32_t> tokens);

  // Calls `visit` with each token that came next where the last n - 1 tokens stood before: it would
  // complete an n-gram that is there already. A token may come more than once.
  template <typename Visit>
  void ForEachRepeat(std::span<const int32_t> tokens, const Visit& visit) const {
    for (int32_t place = PreviousPlace(tokens.size()); place >= 0;
         place = PreviousPlace(static_cast<size_t>(place))) {
      visit(tokens[static_cast<size_t>(place)]);
    }
  }

 private:
  static constexpr int32_t kNoPlace = -1;

  int32_t PreviousPlace(size_t place) const { return previous_[place]; }
  // The slot of the n - 1 tokens before `place`: that which has the same tokens, or an empty one.
  size_t SlotOf(std::span<const int32_t> tokens, size_t place) const;
  void AddPlace(std::span<const int32_t> tokens, size_t place);

  size_t context_tokens_ = 0;  // n - 1
  // A place stands for the n - 1 tokens before it. previous_[p] is the last place before p with the
  // same tokens as p.
  std::vector<int32_t> previous_;
  std::vector<int32_t> latest_;  // hash table with open addressing: the last place with its tokens
};

}  // namespace switchyard
