#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/specialisation.h"
#include "server/loaded_model.h"
#include "switchyard/v1/experts.pb.h"
#include "text/tokenizer.h"

// ProfileExperts without its RPC: what it is asked, and what it answers. `switchyard experts
// --profile` answers itself the same.

namespace switchyard {

// A text that is to be routed, and room to count how.
struct ProfiledText {
  std::vector<int32_t> tokens;
  std::vector<size_t> places;   // of each of them in counts.token_ids
  std::optional<int32_t> lead;  // goes before each sequence and is not counted
  int32_t sequence_tokens = 0;  // of `tokens`, in one sequence
  TextRouting counts;           // of every router that has a choice, zero so far
  SpecialisationOptions options;
};

// Pure: tokenizes the text and makes room. INVALID_ARGUMENT (a FieldViolation) for a text that is
// empty or too large, and numbers out of range.
StatusOr<ProfiledText> ReadProfileRequest(
    const v1::ProfileExpertsRequest& request, const LoadedModel& model
);

// Of what routed a text.
struct ProfileSource {
  std::string model;
  std::string device;
  std::string dtype;
  int64_t sequence_tokens = 0;
};

v1::ProfileExpertsResponse DescribeProfile(
    const TextRouting& counts,
    const SpecialisationOptions& options,
    const Tokenizer& tokenizer,
    const ProfileSource& source
);

}  // namespace switchyard
