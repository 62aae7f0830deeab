#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/typed_field.h"

namespace switchyard {

// A word in the making.
struct PreToken {
  std::string text;
  bool is_text_start = false;  // nothing precedes it in the text that the user gave
  bool continues = false;      // goes on where other text ended: no space may be put in front
};

// One way of splitting text into words.
class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;

  // Appends what becomes of `token`, without empty words.
  virtual Status Split(const PreToken& token, std::vector<PreToken>& words) const = 0;
};

// The "pre_tokenizer" of a tokenizer.json: splits text into the words that byte pair encoding works
// on, and spells them in the model's alphabet. Immutable and thread-safe.
class PreTokenizer {
 public:
  // An absent field leaves text in one piece. UNIMPLEMENTED, naming file and field, for kinds other
  // than ByteLevel, Metaspace, Split, Digits and sequences of them.
  static StatusOr<PreTokenizer> Create(const std::optional<JsonField>& field);

  // RESOURCE_EXHAUSTED when a regular expression of the file takes too much effort on this text.
  StatusOr<std::vector<PreToken>> Split(PreToken text) const;

  // Whether words come out spelled in the byte alphabet (text/byte_alphabet.h).
  bool IsByteLevel() const { return is_byte_level_; }

 private:
  Status Add(const TypedField& part);
  Status AddByteLevel(const JsonField& field);

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool is_byte_level_ = false;
};

}  // namespace switchyard
