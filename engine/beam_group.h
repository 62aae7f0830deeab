#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/beam_search.h"

namespace switchyard {

struct Sequence;

// The sequences of one beam search; shared by them, and gone with the last.
struct BeamGroup {
  BeamGroup(BeamSearchOptions options, int32_t wanted)
      : search(std::move(options)), completions(wanted) {}

  BeamSearch search;
  int32_t completions;               // the best of the hypotheses that are wanted
  std::vector<Sequence*> sequences;  // by beam; the one that has the prompt at first
  bool has_ended = false;            // the sink was told
};

}  // namespace switchyard
