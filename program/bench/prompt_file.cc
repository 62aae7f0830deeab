#include <fstream>
#include <nlohmann/json.hpp>

#include "program/bench/load_plan.h"

namespace switchyard {
namespace {

constexpr int64_t kMostTokens = 1 << 24;

StatusOr<TextPrompt> ParseLine(const std::string& line) {
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return InvalidArgument("not a JSON object");
  }
  TextPrompt prompt;
  for (const auto& [name, value] : object.items()) {
    if (name == "prompt" && value.is_string()) {
      prompt.text = value.get<std::string>();
    } else if (name == "max_tokens" && value.is_number_integer() && value >= 1 && value <= kMostTokens) {
      prompt.max_tokens = value.get<int32_t>();
    } else if (name == "prompt" || name == "max_tokens") {
      return InvalidArgument(
          name, name == "prompt" ? " is no string" : Concat(" is no number of 1 to ", kMostTokens)
      );
    }
  }
  if (prompt.text.empty()) {
    return InvalidArgument("it has no \"prompt\", or an empty one");
  }
  return prompt;
}

}  // namespace

StatusOr<std::vector<TextPrompt>> ReadPromptFile(const std::string& path) {
  std::ifstream file(path);
  std::vector<TextPrompt> prompts;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    StatusOr<TextPrompt> prompt = ParseLine(line);
    if (!prompt.ok()) {
      return InvalidArgument(
          path,
          ", line ",
          number,
          ": ",
          MessageOf(prompt.status()),
          "; each line is {\"prompt\": \"...\", \"max_tokens\": N}"
      );
    }
    prompts.push_back(*std::move(prompt));
  }
  if (!file.eof()) {
    return NotFound("cannot read ", path);
  }
  if (prompts.empty()) {
    return InvalidArgument(
        path, " has no prompt; each line is {\"prompt\": \"...\", \"max_tokens\": N}"
    );
  }
  return prompts;
}

}  // namespace switchyard
