#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace switchyard {

// What surrounds the tokenizer's own file: tokenizer_config.json and what the model's family knows.
struct TokenizerSettings {
  std::optional<bool> add_bos;
  std::optional<std::string> bos_token;  // spelled as in the vocabulary
  std::optional<std::string> eos_token;
  TokenizerDefaults defaults;
};

// Reads tokenizer_config.json; a missing file leaves everything open.
StatusOr<TokenizerSettings> ReadTokenizerSettings(
    const std::filesystem::path& config_path, const TokenizerDefaults& defaults
);

// Which tokens frame a sequence.
struct SequenceTokens {
  std::optional<bool> add_bos;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> eos_id;
};

// tokenizer_config.json overrides what the tokenizer's own file says (`own`), which overrides the
// defaults. INVALID_ARGUMENT when a token is not in the vocabulary or is to be added but is not
// known. The result's add_bos is present.
StatusOr<SequenceTokens> ResolveSequenceTokens(
    const SequenceTokens& own, const TokenizerSettings& settings, const Vocabulary& vocabulary
);

// The bos token to put in front of a text, if any. INVALID_ARGUMENT when the options ask for one
// that there is not.
StatusOr<std::optional<int32_t>> BosFor(const EncodeOptions& options, const SequenceTokens& tokens);

// INVALID_ARGUMENT unless `text` is valid UTF-8 of a size that can be indexed.
Status CheckEncodable(std::string_view text);

}  // namespace switchyard
