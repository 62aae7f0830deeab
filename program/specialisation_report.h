#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "program/specialisation.h"
#include "text/tokenizer.h"

namespace switchyard {

// What `experts --profile` says: for each router and expert, the tokens that it gets more often
// than chance.
struct SpecialisationReport {
  std::string model;
  std::string text_name;
  std::string device;  // that routed the text, and the dtype of its weights: near ties may fall
  std::string dtype;   // otherwise elsewhere
  SpecialisationOptions options;
  const TextRouting& text;
  const Tokenizer& tokenizer;
};

// "layer 3 attn_v, head 1"; without a head where there is one for all.
std::string TitleOf(const RouterCounts& router, int64_t head);

// The token as the vocabulary spells it; its number where the model has more tokens.
std::string PieceOf(const SpecialisationReport& report, int32_t token_id);

// For people at a terminal.
std::string ToTable(const SpecialisationReport& report);

// For programs.
nlohmann::ordered_json ToJson(const SpecialisationReport& report);

// One page that needs nothing else: light and dark, wide and narrow.
std::string ToHtml(const SpecialisationReport& report);

}  // namespace switchyard
