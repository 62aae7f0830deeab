#include "engine/routing_recorder.h"

#include <algorithm>

namespace switchyard {

void RoutingRecorder::Prepare(std::span<const SequenceSlice> slices) {
  runs_.clear();
  recorded_tokens_ = 0;
  routers_ = 0;
  int64_t row = 0;
  for (const SequenceSlice& slice : slices) {
    Sequence& sequence = *slice.sequence;
    const int32_t begin = slice.planned.first_token;
    const int32_t end = begin + slice.planned.tokens;
    const int32_t first = std::max(begin, sequence.next_traced);
    if (sequence.request.trace_routing && first < end) {
      runs_.push_back(
          {.sequence = &sequence,
           .first_row = row + first - begin,
           .offset = recorded_tokens_,
           .first_token = first,
           .tokens = end - first}
      );
      recorded_tokens_ += end - first;
    }
    row += slice.planned.tokens;
  }
}

void RoutingRecorder::OnEmbedding(TensorView /*x*/) {}

void RoutingRecorder::OnHidden(int64_t /*layer*/, TensorView /*x*/) {}

void RoutingRecorder::OnRouting(int64_t layer, RouterKind router, const Routing& routing) {
  if (routers_ == recorded_.size()) {
    recorded_.emplace_back();
  }
  Recorded& recorded = recorded_[routers_++];
  recorded.router = {
      .layer = static_cast<int32_t>(layer),
      .kind = router,
      .heads = static_cast<int32_t>(routing.expert_ids.dim(1)),
      .top_k = static_cast<int32_t>(routing.expert_ids.dim(2)),
      .expert_ids = {},
      .weights = {}};
  const int64_t width = routing.expert_ids.dim(1) * routing.expert_ids.dim(2);
  recorded.ids.resize(static_cast<size_t>(recorded_tokens_ * width));
  recorded.weights.resize(recorded.ids.size());
  for (const Run& run : runs_) {
    const int64_t end_row = run.first_row + run.tokens;
    const TensorView ids = routing.expert_ids.Slice(run.first_row, end_row);
    const TensorView weights = routing.gates.Slice(run.first_row, end_row);
    ops_.Download(ids.data(), recorded.ids.data() + run.offset * width, ids.bytes());
    ops_.Download(weights.data(), recorded.weights.data() + run.offset * width, weights.bytes());
  }
}

void RoutingRecorder::Tell() {
  for (const Run& run : runs_) {
    Sequence& sequence = *run.sequence;
    if (sequence.state == SequenceState::kFinished) {
      continue;
    }
    RoutingEvent event{.completion = sequence.completion};
    if (sequence.next_traced < run.first_token) {
      event.first_token = sequence.next_traced;
      event.tokens = run.first_token - sequence.next_traced;
      event.cached = true;
      sequence.request.sink->OnRouting(event);
    }
    told_.clear();
    for (size_t i = 0; i < routers_; ++i) {
      RoutedTokens& told = told_.emplace_back(recorded_[i].router);
      const auto width = static_cast<size_t>(told.heads) * static_cast<size_t>(told.top_k);
      const size_t begin = static_cast<size_t>(run.offset) * width;
      const size_t count = static_cast<size_t>(run.tokens) * width;
      told.expert_ids = std::span(recorded_[i].ids).subspan(begin, count);
      told.weights = std::span(recorded_[i].weights).subspan(begin, count);
    }
    event.first_token = run.first_token;
    event.tokens = run.tokens;
    event.cached = false;
    event.routers = told_;
    sequence.request.sink->OnRouting(event);
    sequence.next_traced = run.first_token + run.tokens;
  }
}

}  // namespace switchyard
