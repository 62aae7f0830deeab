#include "engine/token_history.h"

#include <algorithm>

namespace switchyard {

void TokenHistory::Start(std::span<const int32_t> prompt, int64_t max_new_tokens) {
  ids_.reserve(prompt.size() + static_cast<size_t>(max_new_tokens));
  ids_.assign(prompt.begin(), prompt.end());
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  output_counts_.reserve(ids_.capacity());
  output_counts_.assign(ids_.size(), 0);
}

void TokenHistory::AddOutputToken(int32_t id) {
  const auto place = std::lower_bound(ids_.begin(), ids_.end(), id);
  const auto count = output_counts_.begin() + (place - ids_.begin());
  if (place != ids_.end() && *place == id) {
    ++*count;
    return;
  }
  output_counts_.insert(count, 1);
  ids_.insert(place, id);
}

}  // namespace switchyard
