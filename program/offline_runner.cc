#include "program/offline_runner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

constexpr int64_t kBlockTokens = 16;
constexpr int64_t kPromptChunkTokens = 256;  // bounds the scratch memory of a long prompt

int64_t BlocksFor(int64_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens;
}

// Copies what it is shown to the host, appending chunk after chunk.
class TraceRecorder : public ForwardObserver {
 public:
  TraceRecorder(Ops& ops, ForwardTrace& trace) : ops_(ops), trace_(trace) {}

  void OnEmbedding(TensorView x) override { Append(x, trace_.embedding); }

  void OnHidden(int64_t layer, TensorView x) override {
    if (trace_.hidden.size() <= static_cast<size_t>(layer)) {
      trace_.hidden.resize(static_cast<size_t>(layer) + 1);
    }
    Append(x, trace_.hidden[static_cast<size_t>(layer)]);
  }

  void OnRouting(int64_t layer, RouterKind router, const Routing& routing) override {
    RoutingTrace& trace = trace_.routing[RouterName(layer, router)];
    trace.groups = routing.expert_ids.dim(1);
    trace.top_k = routing.expert_ids.dim(2);
    Append(routing.expert_ids, trace.ids);
    Append(routing.gates, trace.weights);
  }

 private:
  template <typename Element>
  void Append(TensorView from, std::vector<Element>& to) {
    const size_t before = to.size();
    to.resize(before + static_cast<size_t>(from.elements()));
    ops_.Download(from.data(), to.data() + before, from.bytes());
  }

  Ops& ops_;
  ForwardTrace& trace_;
};

StatusOr<int32_t> LikeliestToken(std::span<const float> logits) {
  size_t best = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!std::isfinite(logits[id])) {
      return Internal("the logit of token ", id, " is ", logits[id], "; are the weights damaged?");
    }
    if (logits[id] > logits[best]) {
      best = id;
    }
  }
  return static_cast<int32_t>(best);
}

}  // namespace

OfflineSequence::OfflineSequence(const Model& model, int64_t max_tokens, int64_t max_chunk_tokens)
    : model_(model),
      max_tokens_(max_tokens),
      max_chunk_tokens_(std::min(max_tokens, max_chunk_tokens)),
      max_blocks_(BlocksFor(max_tokens)) {}

StatusOr<std::unique_ptr<OfflineSequence>> OfflineSequence::Create(
    const Model& model, int64_t max_tokens, int64_t max_chunk_tokens
) {
  CHECK(max_chunk_tokens > 0) << "max_chunk_tokens=" << max_chunk_tokens;
  const int64_t context_tokens = model.config().context_tokens;
  if (max_tokens < 1 || max_tokens > context_tokens) {
    return InvalidArgument(
        "a sequence of ", max_tokens, " tokens; this model takes 1 to ", context_tokens
    );
  }
  std::unique_ptr<OfflineSequence> sequence(new OfflineSequence(model, max_tokens, max_chunk_tokens)
  );
  RETURN_IF_ERROR(sequence->Allocate());
  return sequence;
}

Status OfflineSequence::Allocate() {
  Ops& ops = model_.ops();
  ASSIGN_OR_RETURN(cache_, KvCache::Create(ops, model_.kv_layout(), max_blocks_, kBlockTokens));
  ASSIGN_OR_RETURN(
      scratch_, Scratch::Create(ops, model_.ScratchBytes(max_chunk_tokens_, max_chunk_tokens_))
  );
  // Four arrays with an entry for each token, the block table, two query offsets, one length.
  batch_.resize(static_cast<size_t>(4 * max_chunk_tokens_ + max_blocks_ + 3));
  logits_.resize(static_cast<size_t>(max_chunk_tokens_ * model_.config().vocabulary_size));
  ASSIGN_OR_RETURN(
      batch_memory_, ops.Allocate(static_cast<int64_t>(batch_.size() * sizeof(int32_t)))
  );
  ASSIGN_OR_RETURN(
      logits_memory_, ops.Allocate(static_cast<int64_t>(logits_.size() * sizeof(float)))
  );
  return OkStatus();
}

Status OfflineSequence::CheckChunk(std::span<const int32_t> chunk) const {
  const auto tokens = static_cast<int64_t>(chunk.size());
  if (tokens < 1 || tokens > max_chunk_tokens_ || tokens_ + tokens > max_tokens_) {
    return InvalidArgument(
        "a chunk of ",
        tokens,
        " tokens after ",
        tokens_,
        "; there is room for chunks of 1 to ",
        max_chunk_tokens_,
        " and ",
        max_tokens_,
        " tokens in all"
    );
  }
  const int64_t vocabulary_size = model_.config().vocabulary_size;
  for (size_t i = 0; i < chunk.size(); ++i) {
    if (chunk[i] < 0 || chunk[i] >= vocabulary_size) {
      return InvalidArgument(
          "token ",
          tokens_ + static_cast<int64_t>(i),
          " has id ",
          chunk[i],
          "; this model's ids are 0 to ",
          vocabulary_size - 1
      );
    }
  }
  return OkStatus();
}

StepBatch OfflineSequence::UploadBatch(std::span<const int32_t> chunk, LogitRows rows) {
  const auto tokens = static_cast<int64_t>(chunk.size());
  const int64_t logit_rows = rows == LogitRows::kAll ? tokens : 1;
  auto* const device = static_cast<int32_t*>(batch_memory_->data());
  int64_t used = 0;
  // Appends `count` values: first, first + step, ...
  const auto append = [&](int64_t count, int64_t first, int64_t step) {
    const int64_t begin = std::exchange(used, used + count);
    for (int64_t i = 0; i < count; ++i) {
      batch_[static_cast<size_t>(begin + i)] = static_cast<int32_t>(first + i * step);
    }
    return TensorView(device + begin, DType::kI32, {count});
  };

  StepBatch batch;
  batch.tokens = tokens;
  batch.sequences = 1;
  batch.token_ids = append(tokens, 0, 0);
  std::copy(chunk.begin(), chunk.end(), batch_.begin());
  batch.positions = append(tokens, tokens_, 1);
  // The sequence owns the blocks 0, 1, 2, ..., so that a token's slot is its position.
  batch.slots = batch.positions;
  batch.block_tables = append(max_blocks_, 0, 1).Reshaped({1, max_blocks_});
  batch.phases = append(tokens, static_cast<int64_t>(Phase::kPrefill), 0);
  batch.query_offsets = append(2, 0, tokens);
  batch.kv_lengths = append(1, tokens_ + tokens, 0);
  batch.logit_rows = append(logit_rows, tokens - logit_rows, 1);
  model_.ops().Upload(batch_.data(), device, used * BytesOf(DType::kI32));
  return batch;
}

StatusOr<std::span<const float>> OfflineSequence::Feed(
    std::span<const int32_t> chunk, LogitRows rows, ForwardObserver* observer
) {
  RETURN_IF_ERROR(CheckChunk(chunk));
  const StepBatch batch = UploadBatch(chunk, rows);
  const TensorView logits(
      logits_memory_->data(),
      DType::kF32,
      {batch.logit_rows.dim(0), model_.config().vocabulary_size}
  );
  const Scratch::Scope scope(*scratch_);
  const TensorView hidden = scratch_->Floats({batch.tokens, model_.config().model_dim});
  model_.Forward(batch, *cache_, *scratch_, hidden, observer);
  model_.ComputeLogits(hidden, batch.logit_rows, *scratch_, logits);
  RETURN_IF_ERROR(model_.ops().Finish());
  model_.ops().Download(logits.data(), logits_.data(), logits.bytes());
  tokens_ += batch.tokens;
  return std::span<const float>(logits_).first(static_cast<size_t>(logits.elements()));
}

StatusOr<ForwardTrace> RunForward(
    const Model& model, std::span<const int32_t> tokens, std::span<const int64_t> chunks
) {
  const auto total = static_cast<int64_t>(tokens.size());
  const bool all_positive =
      std::all_of(chunks.begin(), chunks.end(), [](int64_t n) { return n > 0; });
  const int64_t sum = std::accumulate(chunks.begin(), chunks.end(), int64_t{0});
  if (chunks.empty() || !all_positive || sum != total) {
    return InvalidArgument(
        chunks.size(),
        " chunks of ",
        sum,
        " tokens together for a sequence of ",
        total,
        "; the chunks must have at least one token each and add up to the sequence"
    );
  }
  const int64_t longest = *std::max_element(chunks.begin(), chunks.end());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<OfflineSequence> sequence,
      OfflineSequence::Create(model, total, longest)
  );
  ForwardTrace trace;
  TraceRecorder recorder(model.ops(), trace);
  for (const int64_t chunk : chunks) {
    const auto begin = static_cast<size_t>(sequence->tokens());
    ASSIGN_OR_RETURN(
        const std::span<const float> logits,
        sequence->Feed(
            tokens.subspan(begin, static_cast<size_t>(chunk)), LogitRows::kAll, &recorder
        )
    );
    trace.logits.insert(trace.logits.end(), logits.begin(), logits.end());
  }
  trace.tokens = total;
  return trace;
}

StatusOr<std::vector<int32_t>> GreedyContinuation(
    const Model& model, std::span<const int32_t> tokens, int64_t count
) {
  const auto prompt_tokens = static_cast<int64_t>(tokens.size());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<OfflineSequence> sequence,
      OfflineSequence::Create(model, prompt_tokens + count, kPromptChunkTokens)
  );
  std::vector<int32_t> known(tokens.begin(), tokens.end());
  while (static_cast<int64_t>(known.size()) < prompt_tokens + count) {
    const auto pending =
        std::span<const int32_t>(known).subspan(static_cast<size_t>(sequence->tokens()));
    const auto chunk =
        pending.first(std::min(pending.size(), static_cast<size_t>(kPromptChunkTokens)));
    ASSIGN_OR_RETURN(
        const std::span<const float> logits, sequence->Feed(chunk, LogitRows::kLast, nullptr)
    );
    if (chunk.size() == pending.size()) {
      ASSIGN_OR_RETURN(const int32_t likeliest, LikeliestToken(logits));
      known.push_back(likeliest);
    }
  }
  return std::vector<int32_t>(known.begin() + prompt_tokens, known.end());
}

std::string RouterName(int64_t layer, RouterKind kind) {
  return Concat("layer", layer, ".", NameOf(kind));
}

}  // namespace switchyard
