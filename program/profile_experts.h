#pragma once

#include <string>

#include "base/status.h"
#include "program/model_flags.h"
#include "program/specialisation.h"

namespace switchyard {

struct ProfileFlags {
  ModelFlags model;
  std::string text_path;
  SpecialisationOptions specialisation;
};

// Routes a text through a model and prints what its experts specialise in: as a "table", "json" or
// "html". Writes how they share the work to `baseline_path` unless that is empty.
Status ProfileExperts(
    const ProfileFlags& flags, const std::string& output, const std::string& baseline_path
);

}  // namespace switchyard
