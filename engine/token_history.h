#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace switchyard {

// The distinct tokens of one sequence and how often each was generated: what the penalties need.
// Kept sorted in two flat arrays, so that adding a token allocates nothing. Thread-compatible.
class TokenHistory {
 public:
  // Starts with the tokens of `prompt` and has room for `max_new_tokens` more.
  void Start(std::span<const int32_t> prompt, int64_t max_new_tokens);

  void AddOutputToken(int32_t id);

  std::span<const int32_t> ids() const { return ids_; }  // ascending
  std::span<const int32_t> output_counts() const {
    return output_counts_;
  }  // 0: only in the prompt

 private:
  std::vector<int32_t> ids_;
  std::vector<int32_t> output_counts_;
};

}  // namespace switchyard
