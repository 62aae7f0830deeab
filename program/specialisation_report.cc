#include "program/specialisation_report.h"

#include <iomanip>
#include <sstream>
#include <utility>

namespace switchyard {

std::string PieceOf(const SpecialisationReport& report, int32_t token_id) {
  return token_id < report.tokenizer.VocabularySize()
             ? std::string(report.tokenizer.TokenPiece(token_id))
             : Concat("#", token_id);
}

std::string TitleOf(const RouterCounts& router, int64_t head) {
  const std::string layer = Concat("layer ", router.layer, " ", NameOf(router.kind));
  return router.heads > 1 ? Concat(layer, ", head ", head) : layer;
}

std::string ToTable(const SpecialisationReport& report) {
  std::ostringstream table;
  table << std::fixed << report.model << ": " << report.text.tokens << " tokens of "
        << report.text_name << ", " << report.device << ", " << report.dtype << "\n"
        << "Each expert's share of its router's choices, and the tokens that come to it more often "
           "than chance:\nbits of pointwise mutual information, and how many of the token's "
           "occurrences. Tokens with "
        << report.options.min_occurrences << " occurrences or more.\n";
  for (const RouterCounts& router : report.text.routers) {
    int64_t head = -1;
    for (const ExpertSpeciality& expert : SpecialitiesOf(report.text, router, report.options)) {
      if (expert.head != head) {
        head = expert.head;
        table << "\n"
              << TitleOf(router, head) << ", " << router.top_k << " of " << router.experts << "\n";
      }
      table << std::setw(4) << expert.expert << std::setprecision(1) << std::setw(7)
            << 100 * expert.share << "%" << std::setprecision(2);
      for (const TokenAffinity& token : expert.tokens) {
        table << "  " << PieceOf(report, token.token_id) << " " << token.information_bits << " ("
              << token.routed << "/" << token.occurrences << ")";
      }
      table << "\n";
    }
  }
  return std::move(table).str();
}

nlohmann::ordered_json ToJson(const SpecialisationReport& report) {
  nlohmann::ordered_json json = {
      {"model", report.model},
      {"text", report.text_name},
      {"tokens", report.text.tokens},
      {"distinct_tokens", report.text.token_ids.size()},
      {"device", report.device},
      {"dtype", report.dtype},
      {"min_occurrences", report.options.min_occurrences}};
  json["routers"] = nlohmann::ordered_json::array();
  for (const RouterCounts& router : report.text.routers) {
    nlohmann::ordered_json experts = nlohmann::ordered_json::array();
    for (const ExpertSpeciality& expert : SpecialitiesOf(report.text, router, report.options)) {
      nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
      for (const TokenAffinity& token : expert.tokens) {
        tokens.push_back(
            {{"token_id", token.token_id},
             {"piece", PieceOf(report, token.token_id)},
             {"information_bits", token.information_bits},
             {"routed", token.routed},
             {"occurrences", token.occurrences}}
        );
      }
      experts.push_back(
          {{"head", expert.head},
           {"expert", expert.expert},
           {"assignments", expert.assignments},
           {"share", expert.share},
           {"tokens", std::move(tokens)}}
      );
    }
    json["routers"].push_back(
        {{"layer", router.layer},
         {"kind", NameOf(router.kind)},
         {"heads", router.heads},
         {"experts", router.experts},
         {"top_k", router.top_k},
         {"specialities", std::move(experts)}}
    );
  }
  return json;
}

}  // namespace switchyard
