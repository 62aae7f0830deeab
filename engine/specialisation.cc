#include "engine/specialisation.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

int64_t SumOfColumn(const RouterCounts& router, size_t column) {
  const auto columns = static_cast<size_t>(router.heads * router.experts);
  int64_t sum = 0;
  for (size_t cell = column; cell < router.assignments.size(); cell += columns) {
    sum += router.assignments[cell];
  }
  return sum;
}

bool TellsMore(const TokenAffinity& a, const TokenAffinity& b) {
  if (a.information_bits != b.information_bits) {
    return a.information_bits > b.information_bits;
  }
  return a.routed != b.routed ? a.routed > b.routed : a.token_id < b.token_id;
}

std::vector<TokenAffinity> AffinitiesOf(
    const TextRouting& text,
    const RouterCounts& router,
    const ExpertSpeciality& expert,
    const SpecialisationOptions& options
) {
  const auto columns = static_cast<size_t>(router.heads * router.experts);
  const auto column = static_cast<size_t>(expert.head * router.experts + expert.expert);
  std::vector<TokenAffinity> affinities;
  for (size_t place = 0; place < text.token_ids.size(); ++place) {
    const int64_t here = router.assignments[place * columns + column];
    if (here == 0 || text.occurrences[place] < options.min_occurrences) {
      continue;
    }
    const int64_t occurrences = text.occurrences[place];
    const double bits = PointwiseMutualInformation(
        {.both = here, .token = occurrences, .expert = expert.assignments, .all = text.tokens}
    );
    if (bits > 0) {
      affinities.push_back(
          {.token_id = text.token_ids[place],
           .routed = here,
           .occurrences = occurrences,
           .information_bits = bits}
      );
    }
  }
  std::ranges::sort(affinities, TellsMore);
  affinities.resize(std::min(affinities.size(), static_cast<size_t>(options.most_tokens)));
  return affinities;
}

}  // namespace

std::vector<size_t> CountTokens(std::span<const int32_t> tokens, TextRouting& text) {
  std::unordered_map<int32_t, size_t> known;
  std::vector<size_t> places;
  places.reserve(tokens.size());
  for (const int32_t token : tokens) {
    const auto [place, is_new] = known.emplace(token, text.token_ids.size());
    if (is_new) {
      text.token_ids.push_back(token);
      text.occurrences.push_back(0);
    }
    ++text.occurrences[place->second];
    places.push_back(place->second);
  }
  text.tokens = static_cast<int64_t>(tokens.size());
  return places;
}

void CountAssignments(
    std::span<const size_t> places, std::span<const int32_t> expert_ids, RouterCounts& router
) {
  const auto experts = static_cast<size_t>(router.experts);
  const auto top_k = static_cast<size_t>(router.top_k);
  const size_t columns = static_cast<size_t>(router.heads) * experts;
  const size_t width = static_cast<size_t>(router.heads) * top_k;
  CHECK(expert_ids.size() == places.size() * width)
      << expert_ids.size() << " choices for " << places.size() << " tokens of " << width;
  for (size_t row = 0; row < places.size(); ++row) {
    for (size_t slot = 0; slot < width; ++slot) {
      const int32_t expert = expert_ids[row * width + slot];
      if (expert >= 0) {
        const size_t column = slot / top_k * experts + static_cast<size_t>(expert);
        ++router.assignments[places[row] * columns + column];
      }
    }
  }
}

double PointwiseMutualInformation(const PairCounts& counts) {
  CHECK(counts.expert > 0 && counts.all > 0) << counts.expert << " of " << counts.all;
  const double prior = static_cast<double>(counts.expert) / static_cast<double>(counts.all);
  const double posterior =
      (static_cast<double>(counts.both) + prior) / (static_cast<double>(counts.token) + 1);
  return std::log2(posterior / prior);
}

std::vector<ExpertSpeciality> SpecialitiesOf(
    const TextRouting& text, const RouterCounts& router, const SpecialisationOptions& options
) {
  std::vector<ExpertSpeciality> specialities;
  for (int64_t column = 0; column < router.heads * router.experts; ++column) {
    ExpertSpeciality& expert = specialities.emplace_back();
    expert.head = column / router.experts;
    expert.expert = column % router.experts;
    expert.assignments = SumOfColumn(router, static_cast<size_t>(column));
    expert.share =
        static_cast<double>(expert.assignments) / static_cast<double>(text.tokens * router.top_k);
    expert.tokens = AffinitiesOf(text, router, expert, options);
  }
  return specialities;
}

}  // namespace switchyard
