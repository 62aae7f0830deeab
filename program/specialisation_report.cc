#include "program/specialisation_report.h"

#include <iomanip>
#include <sstream>
#include <utility>

#include "base/status.h"

namespace switchyard {

std::string TitleOf(const v1::RouterSpecialities& router, int32_t head) {
  const std::string layer = Concat("layer ", router.layer(), " ", router.kind());
  return router.heads() > 1 ? Concat(layer, ", head ", head) : layer;
}

std::string ToTable(const SpecialisationReport& report) {
  const v1::ProfileExpertsResponse& profile = report.profile;
  std::ostringstream table;
  table << std::fixed << profile.model() << ": " << profile.tokens() << " tokens of "
        << report.text_name << ", " << profile.device() << ", " << profile.dtype() << "\n"
        << "Each expert's share of its router's choices, and the tokens that come to it more often "
           "than chance:\nbits of pointwise mutual information, and how many of the token's "
           "occurrences. Tokens with "
        << profile.min_occurrences() << " occurrences or more.\n";
  for (const v1::RouterSpecialities& router : profile.routers()) {
    int32_t head = -1;
    for (const v1::ExpertSpeciality& expert : router.specialities()) {
      if (expert.head() != head) {
        head = expert.head();
        table << "\n"
              << TitleOf(router, head) << ", " << router.top_k() << " of " << router.experts()
              << "\n";
      }
      table << std::setw(4) << expert.expert() << std::setprecision(1) << std::setw(7)
            << 100 * expert.share() << "%" << std::setprecision(2);
      for (const v1::TokenAffinity& token : expert.tokens()) {
        table << "  " << token.piece() << " " << token.information_bits() << " (" << token.routed()
              << "/" << token.occurrences() << ")";
      }
      table << "\n";
    }
  }
  return std::move(table).str();
}

nlohmann::ordered_json ToJson(const SpecialisationReport& report) {
  const v1::ProfileExpertsResponse& profile = report.profile;
  nlohmann::ordered_json json = {
      {"model", profile.model()},
      {"text", report.text_name},
      {"tokens", profile.tokens()},
      {"distinct_tokens", profile.distinct_tokens()},
      {"sequence_tokens", profile.sequence_tokens()},
      {"device", profile.device()},
      {"dtype", profile.dtype()},
      {"min_occurrences", profile.min_occurrences()}};
  json["routers"] = nlohmann::ordered_json::array();
  for (const v1::RouterSpecialities& router : profile.routers()) {
    nlohmann::ordered_json experts = nlohmann::ordered_json::array();
    for (const v1::ExpertSpeciality& expert : router.specialities()) {
      nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
      for (const v1::TokenAffinity& token : expert.tokens()) {
        tokens.push_back(
            {{"token_id", token.token_id()},
             {"piece", token.piece()},
             {"information_bits", token.information_bits()},
             {"routed", token.routed()},
             {"occurrences", token.occurrences()}}
        );
      }
      experts.push_back(
          {{"head", expert.head()},
           {"expert", expert.expert()},
           {"assignments", expert.assignments()},
           {"share", expert.share()},
           {"tokens", std::move(tokens)}}
      );
    }
    json["routers"].push_back(
        {{"layer", router.layer()},
         {"kind", router.kind()},
         {"heads", router.heads()},
         {"experts", router.experts()},
         {"top_k", router.top_k()},
         {"specialities", std::move(experts)}}
    );
  }
  return json;
}

}  // namespace switchyard
