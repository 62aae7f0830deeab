#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"

namespace switchyard {

// One step on the way from token spellings to text.
class DecoderStep {
 public:
  virtual ~DecoderStep() = default;

  // Over a whole sequence, as the Hugging Face library does it.
  virtual void Apply(std::vector<std::string>& tokens) const = 0;

  // Over one token whose neighbours are not known: what of the step does not depend on the
  // position. May turn the spelling into bytes that are only part of a character.
  virtual void ApplyToRunningToken(std::string& token) const = 0;
};

// The "decoder" of a tokenizer.json. Immutable and thread-safe.
class TokenDecoder {
 public:
  // UNIMPLEMENTED, naming file and field, for kinds other than ByteLevel, ByteFallback, Fuse,
  // Strip, Replace of strings, Metaspace and sequences of them.
  static StatusOr<TokenDecoder> Create(const JsonField& field);

  std::string Decode(std::vector<std::string> tokens) const;

  // The bytes that the token adds to running text.
  std::string RunningBytes(std::string_view token) const;

 private:
  std::vector<std::unique_ptr<DecoderStep>> steps_;
};

}  // namespace switchyard
