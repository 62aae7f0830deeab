#include "program/route_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "program/offline_runner.h"

namespace switchyard {
namespace {

constexpr int64_t kChunkTokens = 256;

// Adds up what it is shown.
class RoutingCounter : public ForwardObserver {
 public:
  RoutingCounter(Ops& ops, TextRouting& text) : ops_(ops), text_(text) {}

  // The next forward pass is of these tokens, by their place in text.token_ids.
  void Begin(std::span<const size_t> places) {
    places_ = places;
    next_router_ = 0;
  }

  void OnEmbedding(TensorView /*x*/) override {}
  void OnHidden(int64_t /*layer*/, TensorView /*x*/) override {}
  void OnRouting(int64_t layer, RouterKind kind, const Routing& routing) override {
    if (next_router_ == text_.routers.size()) {
      RouterCounts& router = text_.routers.emplace_back();
      router.layer = layer;
      router.kind = kind;
      router.heads = routing.expert_ids.dim(1);
      router.experts = routing.experts;
      router.top_k = routing.expert_ids.dim(2);
      router.assignments.resize(
          text_.token_ids.size() * static_cast<size_t>(router.heads * router.experts), 0
      );
    }
    RouterCounts& router = text_.routers[next_router_++];
    ids_.resize(static_cast<size_t>(routing.expert_ids.elements()));
    ops_.Download(routing.expert_ids.data(), ids_.data(), routing.expert_ids.bytes());
    CountAssignments(places_, ids_, router);
  }

 private:
  Ops& ops_;
  TextRouting& text_;
  std::span<const size_t> places_;
  size_t next_router_ = 0;
  std::vector<int32_t> ids_;
};

Status BeginSequence(OfflineSequence& sequence, std::optional<int32_t> bos_id) {
  sequence.Reset();
  if (!bos_id.has_value()) {
    return OkStatus();
  }
  const std::array<int32_t, 1> bos = {*bos_id};
  return sequence.Feed(bos, LogitRows::kLast, nullptr).status();
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
      RETURN_IF_ERROR(BeginSequence(*sequence, bos_id));
    }
    const size_t left_in_window = window - begin % window;
    const size_t count =
        std::min({tokens.size() - begin, left_in_window, static_cast<size_t>(kChunkTokens)});
    counter.Begin(std::span(places).subspan(begin, count));
    RETURN_IF_ERROR(
        sequence->Feed(tokens.subspan(begin, count), LogitRows::kLast, &counter).status()
    );
    begin += count;
    progress(static_cast<int64_t>(begin));
  }
  return text;
}

}  // namespace switchyard
