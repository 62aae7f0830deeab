#include "engine/sequence_blocks.h"

#include <algorithm>
#include <span>

#include "base/check.h"

namespace switchyard {
namespace {

PrefixKey KeyOf(const Sequence& sequence, PrefixId parent, size_t block, int32_t block_tokens) {
  const auto size = static_cast<size_t>(block_tokens);
  return {
      .parent = parent,
      .salt = sequence.request.prefix_sharing.salt,
      .tokens = std::span(sequence.tokens).subspan(block * size, size)};
}

// Of the block that the next token goes into.
size_t NextBlock(const Sequence& sequence, int32_t block_tokens) {
  return static_cast<size_t>(sequence.computed_tokens / block_tokens);
}

}  // namespace

void FindPrefix(
    const BlockPool& pool,
    const Sequence& sequence,
    int32_t block_tokens,
    std::vector<BlockId>& blocks
) {
  blocks.clear();
  if (!sequence.request.prefix_sharing.enabled) {
    return;
  }
  // What is to be scored has to be computed.
  const int32_t reusable = sequence.IsToBeScored(sequence.prompt_tokens - 1)
                               ? sequence.next_scored - 1
                               : sequence.KnownTokens();
  const auto full_blocks = static_cast<size_t>(reusable / block_tokens);
  PrefixId parent = kEmptyPrefix;
  while (blocks.size() < full_blocks) {
    const auto found = pool.Find(KeyOf(sequence, parent, blocks.size(), block_tokens));
    if (!found.has_value()) {
      return;
    }
    blocks.push_back(*found);
    parent = pool.IdOf(*found);
  }
}

int32_t TokensOfPrefix(const Sequence& sequence, int32_t cached_blocks, int32_t block_tokens) {
  return std::min(cached_blocks * block_tokens, sequence.KnownTokens() - 1);
}

void TakePrefix(
    BlockPool& pool, Sequence& sequence, int32_t block_tokens, const std::vector<BlockId>& blocks
) {
  CHECK(sequence.blocks.empty()) << sequence.blocks.size() << " blocks held";
  for (const BlockId block : blocks) {
    pool.Share(block);
    sequence.blocks.push_back(block);
    sequence.prefixes.push_back(pool.IdOf(block));
  }
  sequence.computed_tokens =
      TokensOfPrefix(sequence, static_cast<int32_t>(blocks.size()), block_tokens);
  sequence.most_computed_tokens = std::max(sequence.most_computed_tokens, sequence.computed_tokens);
}

bool CopiesBlock(const BlockPool& pool, const Sequence& sequence, int32_t block_tokens) {
  const size_t next = NextBlock(sequence, block_tokens);
  return next < sequence.blocks.size() && pool.IsShared(sequence.blocks[next]);
}

std::optional<BlockCopy> TakeBlocks(
    BlockPool& pool, Sequence& sequence, int32_t block_tokens, int32_t end
) {
  std::optional<BlockCopy> copy;
  if (CopiesBlock(pool, sequence, block_tokens)) {
    const size_t next = NextBlock(sequence, block_tokens);
    copy = BlockCopy{.from = sequence.blocks[next], .to = pool.Allocate()};
    pool.Release(copy->from);
    sequence.blocks[next] = copy->to;
    // The last block of a run that was found whole: the copy is remembered once it is full again.
    if (sequence.prefixes.size() > next) {
      sequence.prefixes.resize(next);
    }
  }
  while (static_cast<int32_t>(sequence.blocks.size()) < BlocksFor(end, block_tokens)) {
    sequence.blocks.push_back(pool.Allocate());
  }
  return copy;
}

void ShareBlocks(BlockPool& pool, const Sequence& from, Sequence& to) {
  CHECK(to.blocks.empty()) << to.blocks.size() << " blocks held";
  for (const BlockId block : from.blocks) {
    pool.Share(block);
  }
  to.blocks = from.blocks;
  to.prefixes = from.prefixes;
  to.computed_tokens = from.computed_tokens;
  to.most_computed_tokens = std::max(to.most_computed_tokens, to.computed_tokens);
}

void RememberFullBlocks(BlockPool& pool, Sequence& sequence, int32_t block_tokens) {
  if (!sequence.request.prefix_sharing.enabled) {
    return;
  }
  const auto full_blocks = static_cast<size_t>(sequence.computed_tokens / block_tokens);
  while (sequence.prefixes.size() < full_blocks) {
    const size_t block = sequence.prefixes.size();
    const PrefixId parent = block == 0 ? kEmptyPrefix : sequence.prefixes.back();
    sequence.prefixes.push_back(
        pool.Remember(sequence.blocks[block], KeyOf(sequence, parent, block, block_tokens))
    );
  }
}

void ForgetBlocks(BlockPool& pool, Sequence& sequence) {
  for (const BlockId block : sequence.blocks) {
    pool.Forget(block);
  }
}

void ReleaseBlocks(BlockPool& pool, Sequence& sequence) {
  for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block) {
    pool.Release(*block);
  }
  sequence.blocks.clear();
  sequence.computed_tokens = 0;
  sequence.prefixes.clear();
}

}  // namespace switchyard
