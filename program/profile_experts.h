#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "clients/cpp/client.h"
#include "program/model_flags.h"

namespace switchyard {

struct ProfileFlags {
  ModelFlags model;
  std::string text_path;
  int32_t min_occurrences = 10;  // as ProfileExpertsRequest's, and the next one
  int32_t most_tokens = 8;
};

// Routes a text through a model and prints what its experts specialise in: as a "table", "json" or
// "html". Writes how they share the work to `baseline_path` unless that is empty.
Status ProfileExperts(
    const ProfileFlags& flags, const std::string& output, const std::string& baseline_path
);

// The same through the model of a running server, at its admin address.
Status ProfileExpertsOf(const Client& client, const ProfileFlags& flags, const std::string& output);

}  // namespace switchyard
