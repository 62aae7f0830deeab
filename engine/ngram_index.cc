#include "engine/ngram_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace switchyard {
namespace {

uint64_t HashOf(std::span<const int32_t> tokens) {
  uint64_t hash = tokens.size();
  for (const int32_t token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

void NgramIndex::Start(int32_t ngram_tokens, std::span<const int32_t> tokens, int64_t max_tokens) {
  CHECK(ngram_tokens >= 1) << ngram_tokens;
  context_tokens_ = static_cast<size_t>(ngram_tokens) - 1;
  const auto places = static_cast<size_t>(max_tokens) + 1;
  previous_.reserve(places);
  // Half empty at most, so that a search ends soon.
  latest_.assign(std::bit_ceil(2 * places), kNoPlace);
  for (size_t place = 0; place <= tokens.size(); ++place) {
    AddPlace(tokens, place);
  }
}

void NgramIndex::AddLast(std::span<const int32_t> tokens) {
  CHECK(previous_.size() == tokens.size()) << previous_.size() << " places, " << tokens.size();
  AddPlace(tokens, tokens.size());
}

void NgramIndex::AddPlace(std::span<const int32_t> tokens, size_t place) {
  if (place < context_tokens_) {
    previous_.push_back(kNoPlace);
    return;
  }
  int32_t& latest = latest_[SlotOf(tokens, place)];
  previous_.push_back(latest);
  latest = static_cast<int32_t>(place);
}

size_t NgramIndex::SlotOf(std::span<const int32_t> tokens, size_t place) const {
  const auto before = [&](size_t end) {
    return tokens.subspan(end - context_tokens_, context_tokens_);
  };
  const std::span<const int32_t> context = before(place);
  size_t slot = HashOf(context) % latest_.size();
  while (latest_[slot] != kNoPlace &&
         !std::ranges::equal(before(static_cast<size_t>(latest_[slot])), context)) {
    slot = (slot + 1) % latest_.size();
  }
  return slot;
}

}  // namespace switchyard
