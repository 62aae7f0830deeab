#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model/model.h"

// Runs one sequence through a model without an engine: for traces, scores and comparison with
// reference outputs.

namespace switchyard {

// Which tokens of a chunk get logits.
enum class LogitRows : uint8_t { kAll, kLast };

// One sequence with its own KV cache, fed chunk by chunk. Thread-compatible; while it exists
// nothing else may use the model.
class OfflineSequence {
 public:
  // `model` must outlive this. Room for max_tokens tokens, at most max_chunk_tokens of them in one
  // step. INVALID_ARGUMENT when max_tokens is more than the model's context, RESOURCE_EXHAUSTED
  // when the memory is not there.
  static StatusOr<std::unique_ptr<OfflineSequence>> Create(
      const Model& model, int64_t max_tokens, int64_t max_chunk_tokens
  );

  // Computes `chunk` after what was fed before. Returns logits [rows, vocabulary] that stay valid
  // until the next call. INVALID_ARGUMENT for an empty chunk, a token id outside the vocabulary, or
  // more tokens than there is room for. `observer` may be null.
  StatusOr<std::span<const float>> Feed(
      std::span<const int32_t> chunk, LogitRows rows, ForwardObserver* observer
  );

  // Forgets all tokens; the next chunk begins a new sequence.
  void Reset() { tokens_ = 0; }

  int64_t tokens() const { return tokens_; }

 private:
  OfflineSequence(const Model& model, int64_t max_tokens, int64_t max_chunk_tokens);

  Status Allocate();
  Status CheckChunk(std::span<const int32_t> chunk) const;
  StepBatch UploadBatch(std::span<const int32_t> chunk, LogitRows rows);

  const Model& model_;
  int64_t max_tokens_ = 0;
  int64_t max_chunk_tokens_ = 0;
  int64_t max_blocks_ = 0;
  int64_t tokens_ = 0;  // in the cache
  std::optional<KvCache> cache_;
  std::optional<Scratch> scratch_;
  std::unique_ptr<Buffer> batch_memory_;
  std::unique_ptr<Buffer> logits_memory_;
  std::vector<int32_t> batch_;  // host copy of batch_memory_
  std::vector<float> logits_;   // host copy of logits_memory_
};

// What one router chose for each token.
struct RoutingTrace {
  int64_t groups = 0;  // 1, or one for each head
  int64_t top_k = 0;
  std::vector<int32_t> ids;    // [tokens, groups, top_k]
  std::vector<float> weights;  // as ids
};

// Everything that a forward pass shows, on the host.
struct ForwardTrace {
  int64_t tokens = 0;
  std::vector<float> logits;               // [tokens, vocabulary]
  std::vector<float> embedding;            // [tokens, model_dim]
  std::vector<std::vector<float>> hidden;  // by layer: [tokens, model_dim]
  std::map<std::string, RoutingTrace>
      routing;  // by "layer{l}.<router>": "layer0.attn", "layer3.attn_v", "layer3.ffn"
};

// Feeds `tokens` in chunks of the given sizes; they must add up to tokens.size(). One chunk is the
// forward without a cache, more of them go through it. INVALID_ARGUMENT as OfflineSequence and for
// sizes that do not add up.
StatusOr<ForwardTrace> RunForward(
    const Model& model, std::span<const int32_t> tokens, std::span<const int64_t> chunks
);

// The `count` likeliest tokens after `tokens`, one after the other, lowest id among equals;
// end-of-sequence tokens do not end it. INVALID_ARGUMENT when tokens + count is more than the
// context, INTERNAL when a logit is not a number.
StatusOr<std::vector<int32_t>> GreedyContinuation(
    const Model& model, std::span<const int32_t> tokens, int64_t count
);

// "layer3.attn_v"
std::string RouterName(int64_t layer, RouterKind kind);

}  // namespace switchyard
