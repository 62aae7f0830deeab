#pragma once

#include <vector>

#include "engine/active_requests.h"
#include "engine/beam_group.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/sequence.h"

namespace switchyard {

// Carries the rounds of beam searches out on sequences: forks, reassigns and ends them. Used only
// by the engine thread.
class BeamRunner {
 public:
  // `requests` must outlive this.
  explicit BeamRunner(ActiveRequests& requests) : requests_(requests) {}

  // The sequence, a beam, has come to its next token. The last beam of a round moves all of them
  // on.
  void Report(Sequence& sequence, const Selection& selection, Clock::time_point now);

 private:
  void MoveOn(BeamGroup& group, const std::vector<BeamSearch::Child>& children);
  void End(BeamGroup& group, Clock::time_point now);

  ActiveRequests& requests_;
};

}  // namespace switchyard
