#include "text/text_normalizer.h"

#include <utility>

#include "text/typed_field.h"

namespace switchyard {

StatusOr<TextNormalizer> TextNormalizer::Create(const std::optional<JsonField>& field) {
  ASSIGN_OR_RETURN(const std::vector<TypedField> parts, FlattenSequence(field, "normalizers"));
  TextNormalizer normalizer;
  for (const TypedField& part : parts) {
    Step step;
    if (part.type == "Prepend") {
      ASSIGN_OR_RETURN(step.to, part.field.RequireString("prepend"));
    } else if (part.type == "Replace") {
      ASSIGN_OR_RETURN(step.from, ReadLiteralPattern(part.field));
      ASSIGN_OR_RETURN(step.to, part.field.RequireString("content"));
    } else {
      return Unimplemented(
          part.field.Where(),
          ".type is ",
          part.type,
          "; this server reads Prepend, Replace and Sequence"
      );
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

std::string TextNormalizer::Normalize(std::string_view text, bool continues) const {
  std::string normalized(text);
  for (const Step& step : steps_) {
    if (!step.from.empty()) {
      normalized = ReplaceAll(normalized, step.from, step.to);
    } else if (!normalized.empty() && !continues) {
      normalized.insert(0, step.to);
    }
  }
  return normalized;
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  replaced.reserve(text.size());
  while (true) {
    const size_t found = text.find(from);
    replaced += text.substr(0, found);
    if (found == std::string_view::npos) {
      return replaced;
    }
    replaced += to;
    text.remove_prefix(found + from.size());
  }
}

StatusOr<std::string> ReadLiteralPattern(const JsonField& owner) {
  ASSIGN_OR_RETURN(const JsonField pattern, owner.Require("pattern"));
  ASSIGN_OR_RETURN(const std::optional<JsonField> literal, pattern.Find("String"));
  if (!literal) {
    return Unimplemented(
        pattern.Where(), " is not a \"String\", which is the only kind supported here"
    );
  }
  ASSIGN_OR_RETURN(std::string text, literal->String());
  if (text.empty()) {
    return InvalidArgument(literal->Where(), " is empty");
  }
  return text;
}

}  // namespace switchyard
