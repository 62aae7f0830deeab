#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops.h"

namespace switchyard {

// A model as independent parts. A family file only fills this in from its config.json; nothing
// below it knows families.

enum class AttentionKind : uint8_t {
  kMoa,         // routed query and output, keys and values shared by all experts
  kSwitchHead,  // per head: value and output (and query and key where the checkpoint has them) may
                // be experts
};

enum class PositionKind : uint8_t {
  kNone,
  kRotary,         // rotates rotary_dims channels of query and key
  kTransformerXl,  // a term for the distance between query and key
  kStickBreaking,  // the weighting itself knows the order
};

// Which form of the residual stream a projection reads (see LayerInput).
enum class StreamForm : uint8_t { kNormed, kRaw };

enum class RouterScore : uint8_t {
  kLinear,  // x W
  kMlp,     // gelu(x W0 + b0) W1, exact gelu
  kCosine,  // of x W with one centroid for each expert, times a temperature
};

struct RouterConfig {
  int64_t groups = 1;  // 1, or one router for each head
  int64_t experts = 0;
  int64_t top_k = 0;
  RouterScore score = RouterScore::kLinear;
  int64_t score_dim = 0;  // width between the two matrices; not for kLinear
  GateKind gate = GateKind::kSoftmaxSelected;
};

struct AttentionConfig {
  AttentionKind kind = AttentionKind::kMoa;
  int64_t kv_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  RouterConfig router;  // of each of the layer's attention routers
  bool query_routed =
      false;  // SwitchHead: which projections are experts; MoA: query and output always are
  bool key_routed = false;
  bool value_routed = false;
  bool output_routed = false;
  // SwitchHead: which projections have a router of their own. The output always has; else value and
  // query ask the output's, and key the value's (the query's, when that and not the value has one).
  bool value_has_router = true;
  bool query_and_key_have_routers = false;
  StreamForm value_stream = StreamForm::kNormed;
  bool value_is_key = false;  // one vector for both, cached once
  PositionKind positions = PositionKind::kRotary;
  int64_t rotary_dims = 0;
  double rotary_base = 10000;
  float scale = 0;  // of the attention logits

  // Query heads over each kv head: the experts chosen in MoA, else 1.
  int64_t QueryGroups() const { return kind == AttentionKind::kMoa ? router.top_k : 1; }
};

enum class FeedForwardKind : uint8_t {
  kDense,    // act(x W1 + b1) W2 + b2
  kExperts,  // sum over chosen experts of gate * act(x W1[e]) W2[e]; gated: act(first half) *
             // second half
};

struct FeedForwardConfig {
  FeedForwardKind kind = FeedForwardKind::kDense;
  int64_t hidden_dim = 0;  // of one expert
  ActivationKind activation = ActivationKind::kRelu;
  bool gated = false;
  // kExperts: which biases there are. kDense always has both of its own.
  bool hidden_bias = false;                        // one for each expert, before the activation
  bool output_bias = false;                        // one for all, added to the sum
  bool router_bias = false;                        // on the router's scores
  StreamForm expert_stream = StreamForm::kNormed;  // the router always reads the normed one
  RouterConfig router;
};

enum class NormPlacement : uint8_t {
  kBefore,  // x += f(norm(x))
  kAfter,   // x = norm(x + f(x))
};

struct NormConfig {
  NormPlacement placement = NormPlacement::kBefore;
  NormKind kind = NormKind::kRms;
  bool before_logits = true;    // whether there is one more after the last layer
  float block_epsilon = 1e-5F;  // of the norms inside the layers
  float final_epsilon = 1e-5F;  // of the norm before the logits
};

// How executed layers share stored ones.
enum class LayerSharing : uint8_t {
  kRotate,  // a b a b: executed layer l runs stored layer l mod stored_layers; also: no sharing
  kRepeat,  // a a b b: each stored layer runs layers / stored_layers times in a row
};

struct ModelConfig {
  std::string family;
  int64_t vocabulary_size = 0;
  int64_t model_dim = 0;
  int64_t layers = 0;         // executed; each has a KV cache and router counts of its own
  int64_t stored_layers = 0;  // at most `layers`
  LayerSharing sharing = LayerSharing::kRotate;
  int64_t embedding_dim = 0;  // 0: model_dim; else adapters lead from and to model_dim
  int64_t context_tokens = 0;
  AttentionConfig attention;
  FeedForwardConfig feed_forward;
  NormConfig norm;
  float embedding_scale = 1;
  bool tied_head = false;
  // The stored layer whose weights an executed layer uses.
  int64_t StoredLayer(int64_t layer) const;

  // What the tokenizer files may leave open.
  bool adds_bos = false;
  std::optional<int32_t> bos_id;
  std::vector<int32_t> eos_ids;
};

}  // namespace switchyard
