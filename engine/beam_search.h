#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/token_sink.h"

namespace switchyard {

struct BeamSearchOptions {
  int32_t width = 2;  // beams; >= 1
  // A hypothesis scores the sum of its log-probabilities / length ^ length_penalty: above 0 favours
  // long ones, below 0 short ones.
  float length_penalty = 1;
  int32_t max_tokens = 1;
  int32_t min_tokens = 0;  // no hypothesis ends before
  // Tokens that end a hypothesis: the model's, and the request's own.
  std::vector<int32_t> eos_token_ids = {};
  std::vector<int32_t> stop_token_ids = {};
};

// The bookkeeping of one beam search: pure, without a model. Each round, every beam reports its
// likeliest next tokens; then the best continuations of all beams together become the next beams.
// Those that end, by a stop token or at max_tokens, become hypotheses. Over when no beam can beat
// the worst of `width` hypotheses any more, judged by its score so far. Thread-compatible.
class BeamSearch {
 public:
  struct Hypothesis {
    std::vector<int32_t> tokens;  // generated, a stop token included
    std::vector<float> logprobs;  // as tokens
    double score = 0;
    bool ends_with_stop_token = false;
  };
  // The beam that takes the place of beam number its index: `parent` with one more token.
  struct Child {
    int32_t parent = 0;
    int32_t token = 0;
  };

  explicit BeamSearch(BeamSearchOptions options);

  // How many of the likeliest tokens each beam reports: enough that stop tokens crowd no beam out.
  static int32_t TopTokens(const BeamSearchOptions& options);

  // Requires: the beam exists and has not reported in this round.
  void Report(int32_t beam, std::span<const TokenLogprobValue> top);
  bool HasReported(int32_t beam) const;
  bool IsRoundComplete() const;

  // The beams of the next round. Those whose parent has the same number come first to whom they
  // belong: a beam with children keeps the best one in its own place. Requires: IsRoundComplete().
  std::vector<Child> Advance();

  bool IsOver() const { return is_over_; }
  bool IsEos(int32_t token) const;
  // By falling score; at most width of them. Requires: IsOver().
  const std::vector<Hypothesis>& hypotheses() const { return hypotheses_; }

 private:
  struct Beam {
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;
    double sum = 0;
    std::optional<std::vector<TokenLogprobValue>> reported = {};
  };
  struct Candidate {
    size_t parent = 0;
    TokenLogprobValue next;
    double sum = 0;
  };

  std::vector<Candidate> RankCandidates() const;
  Beam Extended(const Candidate& candidate) const;
  double Score(double sum, size_t length) const;
  void AddHypothesis(const Beam& beam, bool ends_with_stop_token);
  bool IsStopToken(int32_t token) const;
  bool CanStillImprove() const;

  BeamSearchOptions options_;
  std::vector<Beam> beams_;
  std::vector<Hypothesis> hypotheses_;
  bool is_over_ = false;
};

}  // namespace switchyard
