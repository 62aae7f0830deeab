#include "program/specialisation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "program/offline_runner.h"

namespace switchyard {
namespace {

constexpr int64_t kChunkTokens = 256;

// Adds up what it is shown.
class RoutingCounter : public ForwardObserver {
 public:
  RoutingCounter(Ops& ops, TextRouting& text) : ops_(ops), text_(text) {}

  // The next forward pass is of these tokens, by their place in text.token_ids.
  void Begin(std::vector<size_t> places) {
    places_ = std::move(places);
    next_router_ = 0;
  }

  void OnEmbedding(TensorView /*x*/) override {}
  void OnHidden(int64_t /*layer*/, TensorView /*x*/) override {}
  void OnRouting(int64_t layer, RouterKind kind, const Routing& routing) override {
    if (next_router_ == text_.routers.size()) {
      text_.routers.push_back(
          {.layer = layer,
           .kind = kind,
           .heads = routing.expert_ids.dim(1),
           .experts = routing.experts,
           .top_k = routing.expert_ids.dim(2),
           .assignments = {}}
      );
    }
    RouterCounts& router = text_.routers[next_router_++];
    ids_.resize(static_cast<size_t>(routing.expert_ids.elements()));
    ops_.Download(routing.expert_ids.data(), ids_.data(), routing.expert_ids.bytes());
    const auto columns = static_cast<size_t>(router.heads * router.experts);
    const auto width = static_cast<size_t>(router.heads * router.top_k);
    router.assignments.resize(text_.token_ids.size() * columns, 0);
    for (size_t row = 0; row < places_.size(); ++row) {
      for (size_t slot = 0; slot < width; ++slot) {
        const int32_t expert = ids_[row * width + slot];
        if (expert >= 0) {
          const size_t head = slot / static_cast<size_t>(router.top_k);
          const size_t column =
              head * static_cast<size_t>(router.experts) + static_cast<size_t>(expert);
          ++router.assignments[places_[row] * columns + column];
        }
      }
    }
  }

 private:
  Ops& ops_;
  TextRouting& text_;
  std::vector<size_t> places_;
  size_t next_router_ = 0;
  std::vector<int32_t> ids_;
};

// Where each of the tokens stands in text.token_ids, which it fills.
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

StatusOr<TextRouting> RouteText(
    const Model& model,
    std::span<const int32_t> tokens,
    std::optional<int32_t> bos_id,
    const RoutingProgress& progress
) {
  const int64_t lead = bos_id.has_value() ? 1 : 0;
  const auto window = static_cast<size_t>(model.config().context_tokens - lead);
  if (tokens.empty() || window == 0) {
    return InvalidArgument(
        "the text has ", tokens.size(), " tokens and the context ", window, "; give a text"
    );
  }
  TextRouting text;
  const std::vector<size_t> places = CountTokens(tokens, text);
  const auto longest = static_cast<int64_t>(std::min(window, tokens.size()));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<OfflineSequence> sequence,
      OfflineSequence::Create(model, lead + longest, kChunkTokens)
  );
  RoutingCounter counter(model.ops(), text);
  for (size_t begin = 0; begin < tokens.size();) {
    if (begin % window == 0) {
      sequence->Reset();
      if (bos_id.has_value()) {
        const std::array<int32_t, 1> bos = {*bos_id};
        RETURN_IF_ERROR(sequence->Feed(bos, LogitRows::kLast, nullptr).status());
      }
    }
    const size_t left_in_window = window - begin % window;
    const size_t count =
        std::min({tokens.size() - begin, left_in_window, static_cast<size_t>(kChunkTokens)});
    const auto first = places.begin() + static_cast<std::ptrdiff_t>(begin);
    counter.Begin({first, first + static_cast<std::ptrdiff_t>(count)});
    RETURN_IF_ERROR(
        sequence->Feed(tokens.subspan(begin, count), LogitRows::kLast, &counter).status()
    );
    begin += count;
    progress(static_cast<int64_t>(begin));
  }
  return text;
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
