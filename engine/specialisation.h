#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/forward_observer.h"

// What the experts of a model specialise in: the tokens that a router sends to an expert more often
// than chance, after the analysis of the MoA paper (Zhang et al. 2022, "Mixture of Attention
// Heads: Selecting Attention Heads Per Token"), for every kind of router.

namespace switchyard {

// How often a router gave each token of a text to each expert.
struct RouterCounts {
  int64_t layer = 0;
  RouterKind kind = RouterKind::kAttention;
  int64_t heads = 1;
  int64_t experts = 0;  // of each head
  int64_t top_k = 0;
  std::vector<int64_t> assignments;  // [distinct tokens, heads * experts]
};

struct TextRouting {
  int64_t tokens = 0;
  std::vector<int32_t> token_ids;     // the distinct ones, as they come
  std::vector<int64_t> occurrences;   // of each of them
  std::vector<RouterCounts> routers;  // in executed order; those that have a choice
};

// Where each of `tokens` stands in text.token_ids, which it fills, as `tokens` and `occurrences`.
// Requires: `text` is empty.
std::vector<size_t> CountTokens(std::span<const int32_t> tokens, TextRouting& text);

// Adds what a router chose for tokens that stand at `places` of text.token_ids: expert_ids is
// [places, heads, top_k], a negative one no expert. Requires: router.assignments has its size.
void CountAssignments(
    std::span<const size_t> places, std::span<const int32_t> expert_ids, RouterCounts& router
);

// How often...
struct PairCounts {
  int64_t both = 0;    // the token came to the expert
  int64_t token = 0;   // the token came at all
  int64_t expert = 0;  // any token came to the expert
  int64_t all = 0;     // any token came
};

// log2(p(expert | token) / p(expert)): how many bits the token tells of the expert; 0: nothing. So
// that a rare token does not look like a specialist, p(expert | token) is estimated as if the token
// had come once more, in the way that all tokens come:
//   (both + expert / all) / (token + 1).
// Requires: expert > 0 and all > 0.
double PointwiseMutualInformation(const PairCounts& counts);

struct TokenAffinity {
  int32_t token_id = 0;
  int64_t routed = 0;       // how often it came to this expert
  int64_t occurrences = 0;  // of how often in all
  double information_bits = 0;
};

struct ExpertSpeciality {
  int64_t head = 0;
  int64_t expert = 0;
  int64_t assignments = 0;
  double share = 0;                   // of its head's
  std::vector<TokenAffinity> tokens;  // by falling information, all above 0
};

struct SpecialisationOptions {
  int64_t min_occurrences = 10;  // of a token in the text, to be looked at
  int64_t most_tokens = 8;       // told of an expert
};

// One for each head and expert, in order.
std::vector<ExpertSpeciality> SpecialitiesOf(
    const TextRouting& text, const RouterCounts& router, const SpecialisationOptions& options
);

}  // namespace switchyard
