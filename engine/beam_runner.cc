#include "engine/beam_runner.h"

#include <algorithm>
#include <memory>

namespace switchyard {

void BeamRunner::Report(Sequence& sequence, const Selection& selection, Clock::time_point now) {
  const std::shared_ptr<BeamGroup> group = sequence.beams;
  sequence.first_token_at = sequence.first_token_at.value_or(now);
  sequence.last_token_at = now;
  group->search.Report(sequence.beam, selection.top);
  if (!group->search.IsRoundComplete()) {
    return;
  }
  const std::vector<BeamSearch::Child> children = group->search.Advance();
  if (group->search.IsOver()) {
    End(*group, now);
  } else {
    MoveOn(*group, children);
  }
}

void BeamRunner::MoveOn(BeamGroup& group, const std::vector<BeamSearch::Child>& children) {
  std::vector<Sequence*>& sequences = group.sequences;
  // Parents are read before any of them gets its next token. A beam in its own place stays there.
  for (size_t beam = 0; beam < children.size(); ++beam) {
    const auto parent = static_cast<size_t>(children[beam].parent);
    if (parent == beam) {
      continue;
    }
    if (beam == sequences.size()) {
      sequences.push_back(&requests_.Fork(*sequences[parent], static_cast<int32_t>(beam)));
    } else {
      requests_.Reassign(*sequences[beam], *sequences[parent]);
    }
  }
  for (size_t beam = 0; beam < sequences.size(); ++beam) {
    if (beam < children.size()) {
      sequences[beam]->Append(children[beam].token);
      sequences[beam]->slots = 1;
    } else {
      requests_.Drop(*sequences[beam]);
    }
  }
  sequences.resize(children.size());
}

void BeamRunner::End(BeamGroup& group, Clock::time_point now) {
  const Sequence& first = *group.sequences[0];
  const std::vector<BeamSearch::Hypothesis>& hypotheses = group.search.hypotheses();
  group.has_ended = true;
  for (int32_t index = 0; index < group.completions; ++index) {
    // Fewer hypotheses than wanted can only be when nearly every token stops; the last stands for
    // those that are missing.
    const BeamSearch::Hypothesis& hypothesis =
        hypotheses[std::min(static_cast<size_t>(index), hypotheses.size() - 1)];
    FinishEvent event = first.Finish(now);
    event.completion = index;
    event.completion_tokens = static_cast<int32_t>(hypothesis.tokens.size());
    event.reason = hypothesis.ends_with_stop_token ? FinishReason::kStop : FinishReason::kLength;
    for (size_t i = 0; i < hypothesis.tokens.size(); ++i) {
      const bool is_last = i + 1 == hypothesis.tokens.size();
      first.request.sink->OnToken(
          {.completion = index,
           .id = hypothesis.tokens[i],
           .logprob = hypothesis.logprobs[i],
           .top = {},
           .completion_tokens = static_cast<int32_t>(i) + 1,
           .is_stop_token = is_last && hypothesis.ends_with_stop_token}
      );
    }
    if (hypothesis.ends_with_stop_token) {
      event.stop_token_id = hypothesis.tokens.back();
      event.stop_is_eos = group.search.IsEos(hypothesis.tokens.back());
    }
    first.request.sink->OnFinished(event);
  }
  for (Sequence* sequence : group.sequences) {
    requests_.Drop(*sequence);
  }
}

}  // namespace switchyard
