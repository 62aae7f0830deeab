#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/block_pool.h"
#include "engine/sequence.h"
#include "engine/step_work.h"

namespace switchyard {

// The moves of a sequence's blocks between it and the pool: each keeps blocks, computed_tokens and
// what the pool remembers of them in step. Used only by the engine thread.

// The cached blocks that hold the head of the sequence's tokens, into `blocks` (emptied first).
// Nothing is taken. Whoever asks must compute one token at least, so that there are logits.
void FindPrefix(
    const BlockPool& pool,
    const Sequence& sequence,
    int32_t block_tokens,
    std::vector<BlockId>& blocks
);

// Tokens that need not be computed with `cached_blocks` blocks of the prefix.
int32_t TokensOfPrefix(const Sequence& sequence, int32_t cached_blocks, int32_t block_tokens);

// Takes the blocks that FindPrefix gave. Requires: the sequence holds none, and nothing was
// allocated since.
void TakePrefix(
    BlockPool& pool, Sequence& sequence, int32_t block_tokens, const std::vector<BlockId>& blocks
);

// Whether the next token goes into a block that must be copied first.
bool CopiesBlock(const BlockPool& pool, const Sequence& sequence, int32_t block_tokens);

// Takes the blocks that the tokens up to `end` need; one replaces the block to be copied, if there
// is one. Requires: they are available.
std::optional<BlockCopy> TakeBlocks(
    BlockPool& pool, Sequence& sequence, int32_t block_tokens, int32_t end
);

// Has `to`, which has the tokens of `from`, read the same blocks. Requires: it holds none.
void ShareBlocks(BlockPool& pool, const Sequence& from, Sequence& to);

// Lets others find the blocks that have become full.
void RememberFullBlocks(BlockPool& pool, Sequence& sequence, int32_t block_tokens);

// Nobody finds the sequence's blocks any more: what they hold cannot be trusted.
void ForgetBlocks(BlockPool& pool, Sequence& sequence);

// Gives all blocks back; nothing of the sequence is computed any more.
void ReleaseBlocks(BlockPool& pool, Sequence& sequence);

}  // namespace switchyard
