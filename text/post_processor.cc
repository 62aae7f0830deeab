#include "text/post_processor.h"

#include <string>
#include <vector>

#include "text/typed_field.h"

namespace switchyard {
namespace {

// The template's name for a special token leads to the list of ids that it stands for.
StatusOr<int32_t> IdOfSpecial(const JsonField& processor, const JsonField& special) {
  ASSIGN_OR_RETURN(const std::string name, special.RequireString("id"));
  ASSIGN_OR_RETURN(const JsonField specials, processor.Require("special_tokens"));
  ASSIGN_OR_RETURN(const JsonField entry, specials.Require(name));
  ASSIGN_OR_RETURN(const JsonField ids, entry.Require("ids"));
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, ids.Elements());
  if (elements.size() != 1) {
    return Unimplemented(ids.Where(), " has ", elements.size(), " ids; only 1 is supported");
  }
  return elements[0].Id();
}

// Only "single" matters: "pair" is for models that take two texts.
Status ReadTemplate(const JsonField& processor, SequenceTokens& tokens) {
  ASSIGN_OR_RETURN(const JsonField single, processor.Require("single"));
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, single.Elements());
  bool seen_text = false;
  tokens.add_bos = false;
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(const std::optional<JsonField> special, element.Find("SpecialToken"));
    ASSIGN_OR_RETURN(const std::optional<JsonField> text, element.Find("Sequence"));
    if (!special && !text) {
      return element.Expected("a SpecialToken or a Sequence");
    }
    if (seen_text || (special && *tokens.add_bos)) {
      return Unimplemented(
          element.Where(),
          " is not supported; a template may have one special token, in front of the text"
      );
    }
    if (!special) {
      seen_text = true;
      continue;
    }
    ASSIGN_OR_RETURN(tokens.bos_id, IdOfSpecial(processor, *special));
    tokens.add_bos = true;
  }
  return seen_text ? OkStatus() : InvalidArgument(single.Where(), " has no place for the text");
}

}  // namespace

StatusOr<SequenceTokens> ReadPostProcessor(const std::optional<JsonField>& field) {
  ASSIGN_OR_RETURN(const std::vector<TypedField> parts, FlattenSequence(field, "processors"));
  SequenceTokens tokens;
  for (const TypedField& part : parts) {
    if (part.type == "ByteLevel") {
      continue;
    }
    if (part.type != "TemplateProcessing") {
      return Unimplemented(
          part.field.Where(),
          ".type is ",
          part.type,
          "; this server reads TemplateProcessing, ByteLevel and Sequence"
      );
    }
    if (tokens.add_bos) {
      return Unimplemented(part.field.Where(), " is a second template; only one is supported");
    }
    RETURN_IF_ERROR(ReadTemplate(part.field, tokens));
  }
  return tokens;
}

}  // namespace switchyard
