#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "switchyard/v1/experts.pb.h"

namespace switchyard {

// What `experts --profile` says: for each router and expert, the tokens that it gets more often
// than chance.
struct SpecialisationReport {
  std::string text_name;
  const v1::ProfileExpertsResponse& profile;
};

// "layer 3 attn_v, head 1"; without a head where there is one for all.
std::string TitleOf(const v1::RouterSpecialities& router, int32_t head);

// For people at a terminal.
std::string ToTable(const SpecialisationReport& report);

// For programs.
nlohmann::ordered_json ToJson(const SpecialisationReport& report);

// One page that needs nothing else: light and dark, wide and narrow.
std::string ToHtml(const SpecialisationReport& report);

}  // namespace switchyard
