#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "kernels/tensor.h"
#include "kernels/weight.h"

// The one interface between the model and the hardware: about twelve verbs on flat rows of tokens.
// `reference/` is the executable definition of each, `cpu/` the fast one; every backend passes the
// same tests.
//
// Words in shapes: tokens (rows of this step), groups (router groups: 1, or one per head), experts
// (of one group), top_k (experts per token and group), assignments = tokens * groups * top_k.
//
// Activations are float32. Weights keep the dtype of the checkpoint and are widened when read; sums
// are float32.
//
// The order rule. Every sum runs in an order that its own output row fixes: never the number of
// rows beside it, the rows' place in the step, the number of threads or the split of a prompt into
// chunks. So a request gets the same bits alone and in any batch. Work may be split over rows,
// columns and heads, never over a summed dimension in a way that depends on the batch.
//
// Errors: a wrong shape is our bug and CHECKs. A device fault is sticky and comes out once per
// step, from Finish(). Threading: used by one thread at a time (the engine thread); a backend may
// run threads of its own inside a verb.

namespace switchyard {

// Memory of a backend, freed with this object.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() const = 0;
  virtual int64_t bytes() const = 0;
};

enum class NormKind : uint8_t {
  kRms,
  kLayer,
  kNone,  // the rows as they are
};
struct NormalizeArgs {
  NormKind kind = NormKind::kRms;
  Weight weight = {};  // kVector [dim]; not for kNone
  Weight bias = {};    // kVector [dim]; only kLayer, may be absent
  float epsilon = 0;
  // optional int32 [out rows]: out row r normalises input row rows[r]; absent means all, in order
  TensorView rows = {};
};

struct MatMulArgs {
  Weight weight;     // kDense
  Weight bias = {};  // kVector [out_features]; may be absent
};

enum class GateKind : uint8_t {
  kSoftmaxAll,       // softmax over all experts of the group; the chosen probabilities as they are
  kSoftmaxSelected,  // softmax over the chosen scores: sums to one
  kSigmoid,          // sigmoid of each chosen score
};

// Which experts each token goes to. Also what a routing trace shows.
struct Routing {
  TensorView expert_ids;  // int32 [tokens, groups, top_k], in 0..experts-1 inside the group, by
                          // falling score; -1: unused
  TensorView gates;       // float32 [tokens, groups, top_k]; 0 where unused
  int32_t experts = 0;    // of one group
  // float32 [tokens, groups]: the lowest score that was chosen less the highest that was not, of
  // the scores as SelectExperts gets them; 0 when all are chosen. May be absent.
  TensorView margins = {};
};

// What a token's routing counts as.
enum class Phase : int32_t { kPrefill = 0, kDecode = 1, kRecompute = 2, kWarmUp = 3 };
inline constexpr int32_t kPhases = 4;

// Gates are summed as integers of this unit, so that the total does not depend on the order of the
// tokens.
inline constexpr double kGateSumUnit = 1.0 / (1 << 24);
// Margins likewise; one over kLargestMargin counts as that, so that the sum cannot overflow before
// 2^33 tokens of the largest.
inline constexpr double kMarginSumUnit = 1.0 / (1 << 20);
inline constexpr float kLargestMargin = 1024;

// Running totals of one router; read through Ops::Download between steps.
struct RouterCounters {
  TensorView tokens;    // int64 [phases, groups * experts]
  TensorView gate_sum;  // int64 [phases, groups * experts], in units of 2^-24 (kGateSumUnit):
                        // integers add in any order
  // int64 [phases, groups * experts], in units of kMarginSumUnit: a row's margin counts under the
  // expert in its first slot. May be absent.
  TensorView margin_sum = {};
};

// A routing sorted by expert, so that each expert's weights are read once.
struct GroupedRouting {
  Routing routing;
  // int32 [assignments]: assignment numbers (row-major in expert_ids), by expert, then ascending;
  // unused slots are left out and as many -1 stand at the end
  TensorView order;
  // int32 [groups * experts + 1]: expert g * experts + e owns order[offsets[.] .. offsets[. + 1])
  TensorView offsets;
};

// Which row belongs to assignment (token, group, slot): one row for each token, for each (token,
// group), or its own.
enum class RowOf : uint8_t { kToken, kGroup, kAssignment };

// out[row] = sum over the row's assignments, in ascending order, of gate * (input row * W[group *
// experts + expert]) + bias. One verb serves every expert product: queries (kToken to kAssignment),
// their output projection (kAssignment to kToken), SwitchHead values (kToken to kGroup) and outputs
// (kGroup to kToken), and both sides of every expert feed-forward.
struct ExpertMatMulArgs {
  Weight weight;            // kExpertStack, experts = groups * experts
  Weight expert_bias = {};  // kVectorStack [groups * experts, out_features], added to each product
                            // before its gate; may be absent
  // kVector [out_features], added once to each out row, not gated; may be absent. The row of an
  // unused slot (kAssignment) is all zeros, without it.
  Weight bias = {};
  GroupedRouting grouped;
  TensorView input;  // [rows by input_rows, in_features]
  RowOf input_rows = RowOf::kToken;
  RowOf output_rows = RowOf::kAssignment;
  bool gated = false;  // multiply by the gate; Requires: true unless output_rows is kAssignment
};

struct RopeArgs {
  TensorView positions;     // int32 [tokens], absolute
  int64_t rotary_dims = 0;  // even, at most head_dim; the channels after it pass unchanged
  float base = 10000;
};

struct StoreKvArgs {
  TensorView key;          // [tokens, kv_heads, key_dim]
  TensorView value;        // [tokens, kv_heads, value_dim]
  TensorView slots;        // int32 [tokens]: block * block_tokens + offset in the block
  TensorView key_cache;    // [blocks, block_tokens, kv_heads, key_dim], one layer
  TensorView value_cache;  // [blocks, block_tokens, kv_heads, value_dim]
};

enum class Weighting : uint8_t {
  kSoftmax,
  kTransformerXl,  // softmax with a term for the distance between query and key
  kStickBreaking,
};
struct PagedAttentionArgs {
  TensorView query;         // [tokens, query_groups, kv_heads, key_dim]
  TensorView key_cache;     // [blocks, block_tokens, kv_heads, key_dim], one layer
  TensorView value_cache;   // [blocks, block_tokens, kv_heads, value_dim]
  TensorView block_tables;  // int32 [sequences, max_blocks]; unused tail is -1
  // int32 [sequences + 1]; sequence s owns tokens offsets[s] .. offsets[s + 1]
  TensorView query_offsets;
  TensorView kv_lengths;  // int32 [sequences]; counts this step's tokens too
  // kTransformerXl: [max_distance, kv_heads, key_dim], row d for a key d tokens back. The logit is
  // scale * query . (key + distance key)
  TensorView distance_keys = {};
  float scale = 0;  // usually 1 / sqrt(key_dim)
  Weighting weighting = Weighting::kSoftmax;
};

enum class ActivationKind : uint8_t { kIdentity, kRelu, kSilu, kGelu, kGeluTanh, kSigmoid };
struct ActivateArgs {
  ActivationKind kind = ActivationKind::kSilu;
  bool gated = false;  // input has 2 * dim columns: out = activation(first half) * second half
};

// One row of SelectTokens. Applied in this order: repetition penalty, presence and frequency
// penalty, bias, allowed ids, then (when temperature > 0) temperature, top_k, top_p, min_p,
// typical_p, and one draw; when temperature is 0 the largest, lowest id first. top_k, top_p, min_p
// and typical_p each act on the renormalised distribution that the one before left; ties go to the
// lowest id. top_p keeps the smallest set, by falling probability, that sums to it; min_p what is
// at least min_p times the largest; typical_p (Meister et al. 2022, "Locally typical sampling") the
// smallest set that sums to it, by rising distance of -log(probability) from its mean, the entropy
// of the distribution.
struct SelectTokensRow {
  float temperature = 0;  // >= 0
  int32_t top_k = 0;      // 0: all
  float top_p = 1;        // (0, 1]
  float min_p = 0;        // [0, 1]
  float typical_p = 1;    // (0, 1]; 1: all
  // > 0; logits of seen tokens are divided by it if positive, else multiplied
  float repetition_penalty = 1;
  float presence_penalty = 0;   // subtracted once from each token that was generated
  float frequency_penalty = 0;  // subtracted for each time it was generated
  uint64_t seed = 0;
  // Of the token to be chosen, in its sequence: the draw is a function of (seed, position).
  uint64_t position = 0;
  int32_t history_begin = 0;  // this row's part of history_*
  int32_t history_end = 0;
  int32_t bias_begin = 0;  // this row's part of bias_*
  int32_t bias_end = 0;
  int32_t allowed_begin = 0;  // this row's part of allowed_ids; empty: every token is allowed
  int32_t allowed_end = 0;
  int32_t top_logprobs = 0;  // how many of top_ids and top_logprobs to fill
};
struct SelectTokensArgs {
  TensorView logits;                      // float32 [rows, vocabulary]; overwritten
  const SelectTokensRow* rows = nullptr;  // host memory, as are the next five; [logits rows]
  const int32_t* history_ids = nullptr;   // distinct token ids seen in prompt or output
  const int32_t* history_output_counts = nullptr;  // how often generated; 0: only in the prompt
  const int32_t* bias_ids = nullptr;               // a token may stand here more than once
  const float* bias_values = nullptr;              // added; -infinity forbids
  // Each row's part ascends without repetition; every token that is not in it is forbidden.
  const int32_t* allowed_ids = nullptr;
  // What Ops::PackSelection wrote, in the backend's memory, 16-byte aligned; null: the verb sends
  // the rows to the device by itself.
  const void* packed = nullptr;
};
// What SelectTokens gives in place of a token id.
inline constexpr int32_t kLogitsNotFinite = -1;
inline constexpr int32_t kEveryTokenForbidden = -2;
// Host memory; everything has one entry for each row.
struct SelectedTokens {
  // kLogitsNotFinite when the raw logits hold a NaN or an infinity of either sign; otherwise
  // kEveryTokenForbidden when bias and allowed ids leave no token. Nothing else is written for such
  // a row.
  int32_t* ids = nullptr;
  // Log-softmax of the raw logits, before penalties, bias and temperature; null when no row wants
  // any.
  float* logprobs = nullptr;
  // [rows, max_top_logprobs], by falling raw logit, lowest id first; where the vocabulary has
  // fewer, -1 with logprob -infinity.
  int32_t* top_ids = nullptr;
  float* top_logprobs = nullptr;  // [rows, max_top_logprobs]
  int32_t max_top_logprobs = 0;
};

// Queues sequences of verbs that come again and again, for a backend where queuing takes time. Used
// as the Ops that made it, which must outlive it.
class VerbRecorder {
 public:
  virtual ~VerbRecorder() = default;
  // Does what verbs() does. Requires: for one key always the same verbs with the same arguments;
  // only what the memory holds may differ. They do not allocate, upload, download, select tokens or
  // finish. So the backend may play again what they have queued before, in place of calling them.
  virtual void Run(uint64_t key, const std::function<void()>& verbs) = 0;
  // Of how many keys it keeps recordings at a time, in memory of the backend.
  virtual int64_t MaxRecordings() const = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;

  virtual const char* Name() const = 0;

  // What Allocate could give at this moment.
  virtual int64_t AvailableBytes() const = 0;
  // RESOURCE_EXHAUSTED, with both numbers, when the backend has not so much memory. The memory is
  // zeroed.
  virtual StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) = 0;
  // Between host memory and memory of this backend, `bytes` of it.
  virtual void Upload(const void* host, void* device, int64_t bytes) = 0;
  virtual void Download(const void* device, void* host, int64_t bytes) = 0;
  // Between two places of this backend's memory that do not overlap.
  virtual void Copy(const void* from, void* to, int64_t bytes) = 0;

  // Hands a weight over; called while loading, before the first verb. The backend keeps it for its
  // own life, also when the model that wanted it is gone: the next model wants an Ops of its own.
  virtual Weight AddWeight(const WeightSource& source) = 0;
  // Bytes of weights that the verbs have read since the start; for benchmarks. Expert weights count
  // once for each verb call that touches them.
  virtual int64_t WeightBytesRead() const = 0;

  // out[t] = scale * table[token_ids[t]]. Requires: ids in the vocabulary.
  virtual void Embed(const Weight& table, TensorView token_ids, float scale, TensorView out) = 0;

  // kRms: x * w / sqrt(mean(x^2) + epsilon). kLayer: (x - mean) / sqrt(variance + epsilon) * w + b.
  // kNone: x. Over the columns. `out` may be `input` when no rows are given.
  virtual void Normalize(const NormalizeArgs& args, TensorView input, TensorView out) = 0;

  // out[r] = input[r] * W^T + bias.
  virtual void MatMul(const MatMulArgs& args, TensorView input, TensorView out) = 0;

  // scores [tokens, groups, experts] -> the top_k largest of each group (top_k is the last
  // dimension of out.expert_ids), lowest expert first among equals, and their gates. A NaN score
  // ranks below every number. Fills out.margins, too, if they exist.
  virtual void SelectExperts(GateKind gate, TensorView scores, const Routing& out) = 0;

  // Fills out.order and out.offsets from out.routing and adds to the counters, if they exist, under
  // each token's phase (phases: int32 [tokens], values of Phase). A gate or margin that is not
  // finite counts as 0 in its sum. Requires: the routing has margins if counters.margin_sum exists.
  virtual void GroupByExpert(
      TensorView phases, const RouterCounters& counters, const GroupedRouting& out
  ) = 0;

  virtual void ExpertMatMul(const ExpertMatMulArgs& args, TensorView out) = 0;

  // Rotates heads [tokens, heads, head_dim] in place: pairs (i, i + rotary_dims / 2), angle
  // position * base^(-2 i / rotary_dims), both in float32 as the reference code computes them.
  virtual void Rope(const RopeArgs& args, TensorView heads) = 0;

  // Writes each token's key and value to its slot.
  virtual void StoreKv(const StoreKvArgs& args) = 0;

  // out[t, g, h] = sum_j weight_j(scale * query[t, g, h] . key[j, h]) * value[j, h], over positions
  // j of t's own sequence not after t; weight is softmax over j, for example. Prefill and decode
  // are this same call. Query groups are tiled over the kv heads (MoA: one group per selected
  // expert), not the kv-major order of grouped-query kernels. Stick-breaking: sigmoid(l_j) * prod
  // over m in (j, t] of (1 - sigmoid(l_m)). Requires: keys and values of this step are stored; out
  // does not alias query.
  virtual void PagedAttention(const PagedAttentionArgs& args, TensorView out) = 0;

  // `out` may be `input` when not gated.
  virtual void Activate(const ActivateArgs& args, TensorView input, TensorView out) = 0;

  // x += update.
  virtual void Add(TensorView x, TensorView update) = 0;

  virtual void SelectTokens(const SelectTokensArgs& args, const SelectedTokens& out) = 0;

  // Waits for the step's work; the first device fault since the last call, if any.
  virtual Status Finish() = 0;

  // Whether verbs keep memory of their own, as much as the largest step so far needed.
  virtual bool KeepsWorkMemory() const { return false; }

  // Where verbs only queue work: lets recurring sequences of them be recorded. Else null.
  virtual std::unique_ptr<VerbRecorder> MakeRecorder() { return nullptr; }

  // What SelectTokens will read besides logits, as bytes that can go to the device together with a
  // step's other inputs; 0 where there is no such thing.
  virtual int64_t PackedSelectionBytes(const SelectTokensArgs& /*args*/) const { return 0; }
  virtual void PackSelection(const SelectTokensArgs& /*args*/, void* /*host*/) const {}
};

}  // namespace switchyard
