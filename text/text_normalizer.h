#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"

namespace switchyard {

// The "normalizer" of a tokenizer.json, as far as Llama-style tokenizers use it: text put in front,
// strings replaced. Immutable and thread-safe.
class TextNormalizer {
 public:
  // An absent field normalizes nothing. UNIMPLEMENTED, naming file and field, for all other kinds.
  static StatusOr<TextNormalizer> Create(const std::optional<JsonField>& field);

  // A text that `continues` another gets nothing put in front.
  std::string Normalize(std::string_view text, bool continues = false) const;

 private:
  struct Step {
    std::string from;  // empty: put `to` in front, unless the text is empty
    std::string to;
  };

  std::vector<Step> steps_;
};

// `text` with each occurrence of `from`, which is not empty, replaced by `to`.
std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);

// The literal of a {"String": ...} pattern that replaces; UNIMPLEMENTED when it is a regular
// expression.
StatusOr<std::string> ReadLiteralPattern(const JsonField& owner);

}  // namespace switchyard
