#include "text/tokenizer_settings.h"

#include <cstdio>
#include <system_error>

#include "base/json_text.h"
#include "text/json_field.h"
#include "text/text_file.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

// Prompts are bounded by the context length long before; this keeps the encoders' index arithmetic
// far from limits.
constexpr size_t kMaxTextBytes = size_t{256} << 20;

// A token is written as its spelling, or as an object with the spelling in "content".
StatusOr<std::optional<std::string>> ReadToken(const JsonField& config, const std::string& key) {
  ASSIGN_OR_RETURN(const std::optional<JsonField> field, config.Find(key));
  if (!field) {
    return std::optional<std::string>();
  }
  if (field->IsString()) {
    ASSIGN_OR_RETURN(std::string token, field->String());
    return std::optional<std::string>(std::move(token));
  }
  ASSIGN_OR_RETURN(const JsonField content, field->Require("content"));
  ASSIGN_OR_RETURN(std::string token, content.String());
  return std::optional<std::string>(std::move(token));
}

// One of the two tokens: by spelling, else by the tokenizer's file, else by the family's default.
StatusOr<std::optional<int32_t>> ResolveToken(
    const char* name,
    const std::optional<std::string>& spelling,
    const std::optional<int32_t>& own,
    const std::optional<int32_t>& otherwise,
    const Vocabulary& vocabulary
) {
  if (spelling) {
    const std::optional<int32_t> id = vocabulary.Find(*spelling);
    if (!id) {
      return InvalidArgument(
          "tokenizer_config.json: ",
          name,
          "_token is \"",
          *spelling,
          "\", which is not in the vocabulary"
      );
    }
    return id;
  }
  if (own) {
    return own;
  }
  if (otherwise && (*otherwise < 0 || *otherwise >= vocabulary.Size())) {
    return InvalidArgument(
        "the model's configuration sets ",
        name,
        "_token_id to ",
        *otherwise,
        "; the tokenizer's ids lie in [0, ",
        vocabulary.Size(),
        ")"
    );
  }
  return otherwise;
}

}  // namespace

StatusOr<TokenizerSettings> ReadTokenizerSettings(
    const std::filesystem::path& config_path, const TokenizerDefaults& defaults
) {
  TokenizerSettings settings;
  settings.defaults = defaults;
  std::error_code error;
  if (!std::filesystem::exists(config_path, error)) {
    return settings;
  }
  ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(config_path));
  ASSIGN_OR_RETURN(const nlohmann::json document, ParseJson(text, config_path.string()));
  const JsonField config(document, config_path.string());
  ASSIGN_OR_RETURN(const std::optional<JsonField> add_bos, config.Find("add_bos_token"));
  if (add_bos) {
    ASSIGN_OR_RETURN(settings.add_bos, add_bos->Bool());
  }
  ASSIGN_OR_RETURN(settings.bos_token, ReadToken(config, "bos_token"));
  ASSIGN_OR_RETURN(settings.eos_token, ReadToken(config, "eos_token"));
  return settings;
}

StatusOr<SequenceTokens> ResolveSequenceTokens(
    const SequenceTokens& own, const TokenizerSettings& settings, const Vocabulary& vocabulary
) {
  const TokenizerDefaults& defaults = settings.defaults;
  SequenceTokens tokens;
  ASSIGN_OR_RETURN(
      tokens.bos_id,
      ResolveToken("bos", settings.bos_token, own.bos_id, defaults.bos_id, vocabulary)
  );
  ASSIGN_OR_RETURN(
      tokens.eos_id,
      ResolveToken("eos", settings.eos_token, own.eos_id, defaults.eos_id, vocabulary)
  );
  tokens.add_bos = settings.add_bos.value_or(own.add_bos.value_or(defaults.add_bos));
  if (*tokens.add_bos && !tokens.bos_id) {
    return InvalidArgument(
        "a beginning-of-sequence token is to be added, but none is known; name it in "
        "tokenizer_config.json "
        "(bos_token) or set add_bos_token to false there"
    );
  }
  return tokens;
}

StatusOr<std::optional<int32_t>> BosFor(
    const EncodeOptions& options, const SequenceTokens& tokens
) {
  if (!options.add_bos.value_or(tokens.add_bos.value_or(false))) {
    return std::optional<int32_t>();
  }
  if (!tokens.bos_id) {
    return InvalidArgument(
        "add_bos is true, but this tokenizer has no beginning-of-sequence token; leave add_bos "
        "unset"
    );
  }
  return tokens.bos_id;
}

Status CheckEncodable(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return InvalidArgument(
        "text has ", text.size(), " bytes; at most ", kMaxTextBytes, " can be encoded"
    );
  }
  // Checked once here: everything behind relies on whole characters.
  const std::optional<size_t> offset = FindInvalidUtf8(text);
  if (offset) {
    char byte[8];
    std::snprintf(byte, sizeof(byte), "0x%02X", static_cast<unsigned char>(text[*offset]));
    return InvalidArgument(
        "text is not valid UTF-8 at byte offset ",
        *offset,
        " (",
        byte,
        "); send UTF-8, or token ids"
    );
  }
  return OkStatus();
}

}  // namespace switchyard
