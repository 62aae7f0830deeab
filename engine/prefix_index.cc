#include "engine/prefix_index.h"

#include <absl/hash/hash.h>
#include <absl/types/span.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace switchyard {

PrefixIndex::PrefixIndex(int32_t total_blocks, int32_t block_tokens)
    : block_tokens_(block_tokens),
      entries_(static_cast<size_t>(total_blocks)),
      tokens_(entries_.size() * static_cast<size_t>(block_tokens)),
      buckets_(std::bit_ceil(std::max<size_t>(1, 2 * entries_.size())), -1) {}

std::optional<BlockId> PrefixIndex::Find(const PrefixKey& key) const {
  for (int32_t block = buckets_[BucketOf(key)]; block >= 0;
       block = entries_[static_cast<size_t>(block)].next) {
    if (Matches(block, key)) {
      return BlockId{block};
    }
  }
  return std::nullopt;
}

PrefixId PrefixIndex::Insert(BlockId block, const PrefixKey& key) {
  CHECK(static_cast<int32_t>(key.tokens.size()) == block_tokens_)
      << key.tokens.size() << " tokens in a block of " << block_tokens_;
  CHECK(!Contains(block) && !Find(key).has_value()) << "block " << static_cast<int32_t>(block);
  const auto index = static_cast<size_t>(block);
  Entry& entry = entries_[index];
  entry.id = PrefixId{++last_id_};
  entry.parent = key.parent;
  entry.salt.assign(key.parent == kEmptyPrefix ? key.salt : std::string_view());
  entry.bucket = BucketOf(key);
  entry.next = buckets_[entry.bucket];
  buckets_[entry.bucket] = static_cast<int32_t>(block);
  const size_t first = index * static_cast<size_t>(block_tokens_);
  std::copy(key.tokens.begin(), key.tokens.end(), tokens_.begin() + static_cast<int64_t>(first));
  return entry.id;
}

void PrefixIndex::Erase(BlockId block) {
  CHECK(Contains(block)) << "block " << static_cast<int32_t>(block);
  Entry& entry = entries_[static_cast<size_t>(block)];
  int32_t* link = &buckets_[entry.bucket];
  while (*link != static_cast<int32_t>(block)) {
    link = &entries_[static_cast<size_t>(*link)].next;
  }
  *link = entry.next;
  entry.id = kEmptyPrefix;
}

size_t PrefixIndex::BucketOf(const PrefixKey& key) const {
  // Seeded for each process, so that nobody can prepare prompts that share a bucket.
  const std::string_view salt = key.parent == kEmptyPrefix ? key.salt : std::string_view();
  const size_t hash = absl::HashOf(
      static_cast<uint64_t>(key.parent),
      std::string(salt),
      absl::Span<const int32_t>(key.tokens.data(), key.tokens.size())
  );
  return hash & (buckets_.size() - 1);
}

bool PrefixIndex::Matches(int32_t block, const PrefixKey& key) const {
  const Entry& entry = entries_[static_cast<size_t>(block)];
  const std::span<const int32_t> tokens = TokensOf(block);
  return entry.parent == key.parent && (key.parent != kEmptyPrefix || entry.salt == key.salt) &&
         std::equal(tokens.begin(), tokens.end(), key.tokens.begin(), key.tokens.end());
}

std::span<const int32_t> PrefixIndex::TokensOf(int32_t block) const {
  return std::span(tokens_).subspan(
      static_cast<size_t>(block) * static_cast<size_t>(block_tokens_),
      static_cast<size_t>(block_tokens_)
  );
}

}  // namespace switchyard
