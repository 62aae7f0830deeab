#include "engine/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

// Puts the first child of each beam into its parent's own place, so that it goes on in the same
// blocks; the others fill the places that are left.
template <typename Beam>
std::vector<BeamSearch::Child> ArrangeByParent(
    std::vector<std::pair<BeamSearch::Child, Beam>>& next, std::vector<Beam>& beams
) {
  std::vector<std::optional<size_t>> places(next.size());
  std::vector<bool> is_placed(next.size(), false);
  for (size_t i = 0; i < next.size(); ++i) {
    const auto parent = static_cast<size_t>(next[i].first.parent);
    if (parent < places.size() && !places[parent].has_value()) {
      places[parent] = i;
      is_placed[i] = true;
    }
  }
  size_t waiting = 0;
  std::vector<BeamSearch::Child> children;
  beams.clear();
  for (std::optional<size_t>& place : places) {
    if (!place.has_value()) {
      while (is_placed[waiting]) {
        ++waiting;
      }
      place = waiting++;
    }
    children.push_back(next[*place].first);
    beams.push_back(std::move(next[*place].second));
  }
  return children;
}

}  // namespace

BeamSearch::BeamSearch(BeamSearchOptions options) : options_(std::move(options)), beams_(1) {
  CHECK(options_.width >= 1 && options_.max_tokens >= 1)
      << "width=" << options_.width << " max_tokens=" << options_.max_tokens;
}

int32_t BeamSearch::TopTokens(const BeamSearchOptions& options) {
  // Of its width + stop tokens likeliest, at least `width` go on.
  return options.width +
         static_cast<int32_t>(options.eos_token_ids.size() + options.stop_token_ids.size());
}

void BeamSearch::Report(int32_t beam, std::span<const TokenLogprobValue> top) {
  std::optional<std::vector<TokenLogprobValue>>& reported =
      beams_.at(static_cast<size_t>(beam)).reported;
  CHECK(!reported.has_value()) << "beam " << beam << " reports twice";
  reported.emplace(top.begin(), top.end());
}

bool BeamSearch::HasReported(int32_t beam) const {
  return beams_.at(static_cast<size_t>(beam)).reported.has_value();
}

bool BeamSearch::IsRoundComplete() const {
  return std::ranges::all_of(beams_, [](const Beam& beam) { return beam.reported.has_value(); });
}

std::vector<BeamSearch::Child> BeamSearch::Advance() {
  CHECK(IsRoundComplete() && !is_over_) << "the round goes on";
  const auto width = static_cast<size_t>(options_.width);
  const auto length = static_cast<int32_t>(beams_[0].tokens.size()) + 1;
  std::vector<std::pair<Child, Beam>> next;
  for (const Candidate& candidate : RankCandidates()) {
    if (next.size() == width) {
      break;
    }
    const bool stops = IsStopToken(candidate.next.id);
    if (stops && length < options_.min_tokens) {
      continue;
    }
    Beam beam = Extended(candidate);
    if (stops) {
      AddHypothesis(beam, /*ends_with_stop_token=*/true);
    } else {
      const Child child{
          .parent = static_cast<int32_t>(candidate.parent), .token = candidate.next.id};
      next.emplace_back(child, std::move(beam));
    }
  }
  std::vector<Child> children = ArrangeByParent(next, beams_);
  if (length >= options_.max_tokens) {
    for (const Beam& beam : beams_) {
      AddHypothesis(beam, /*ends_with_stop_token=*/false);
    }
    beams_.clear();
  }
  is_over_ = !CanStillImprove();
  return children;
}

std::vector<BeamSearch::Candidate> BeamSearch::RankCandidates() const {
  std::vector<Candidate> candidates;
  for (size_t beam = 0; beam < beams_.size(); ++beam) {
    for (const TokenLogprobValue& next : *beams_[beam].reported) {
      if (next.id >= 0) {
        candidates.push_back({.parent = beam, .next = next, .sum = beams_[beam].sum + next.logprob}
        );
      }
    }
  }
  // Among equals the lower beam, then the likelier token: the order in which they stand.
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::sum);
  return candidates;
}

BeamSearch::Beam BeamSearch::Extended(const Candidate& candidate) const {
  const Beam& parent = beams_[candidate.parent];
  Beam beam{.tokens = parent.tokens, .logprobs = parent.logprobs, .sum = candidate.sum};
  beam.tokens.push_back(candidate.next.id);
  beam.logprobs.push_back(candidate.next.logprob);
  return beam;
}

double BeamSearch::Score(double sum, size_t length) const {
  return sum / std::pow(static_cast<double>(length), options_.length_penalty);
}

void BeamSearch::AddHypothesis(const Beam& beam, bool ends_with_stop_token) {
  const double score = Score(beam.sum, beam.tokens.size());
  const auto place =
      std::ranges::upper_bound(hypotheses_, score, std::ranges::greater(), &Hypothesis::score);
  hypotheses_.insert(
      place,
      {.tokens = beam.tokens,
       .logprobs = beam.logprobs,
       .score = score,
       .ends_with_stop_token = ends_with_stop_token}
  );
  if (hypotheses_.size() > static_cast<size_t>(options_.width)) {
    hypotheses_.pop_back();
  }
}

bool BeamSearch::IsEos(int32_t token) const {
  return std::ranges::find(options_.eos_token_ids, token) != options_.eos_token_ids.end();
}

bool BeamSearch::IsStopToken(int32_t token) const {
  return IsEos(token) ||
         std::ranges::find(options_.stop_token_ids, token) != options_.stop_token_ids.end();
}

bool BeamSearch::CanStillImprove() const {
  if (beams_.empty()) {
    return false;
  }
  if (hypotheses_.size() < static_cast<size_t>(options_.width)) {
    return true;
  }
  return std::ranges::any_of(beams_, [this](const Beam& beam) {
    return Score(beam.sum, beam.tokens.size()) > hypotheses_.back().score;
  });
}

}  // namespace switchyard
