#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace switchyard {

struct EncodeOptions {
  // Whether the beginning-of-sequence token is put in front; absent means the tokenizer's own
  // default.
  std::optional<bool> add_bos = std::nullopt;
  // Whether text such as "</s>" becomes the control token of that name. Off, user text never turns
  // into control tokens: their spelling is encoded as ordinary characters. The same goes for the
  // pieces that the maker of a SentencePiece model defined by hand, where chat models keep their
  // control words. Added tokens of a tokenizer.json that are not special, such as runs of spaces,
  // are always recognised.
  bool parse_special = false;
  // Whether the text goes on where other text ended: a space in front is kept as it is, and none is
  // put there by a tokenizer that would put one before the first word.
  bool continues_text = false;
};

// Text <-> token ids. Immutable after loading and safe to use from any number of threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // INVALID_ARGUMENT when `text` is not valid UTF-8 (the message names the byte offset).
  virtual StatusOr<std::vector<int32_t>> Encode(std::string_view text, const EncodeOptions& options)
      const = 0;

  // The text of a whole sequence, as the tokenizer's own library decodes it: control tokens are
  // left out, and a SentencePiece dummy prefix space is removed. Bytes that are not valid UTF-8
  // become U+FFFD. INVALID_ARGUMENT when an id is outside [0, VocabularySize()).
  virtual StatusOr<std::string> Decode(std::span<const int32_t> ids) const = 0;

  // The bytes that this token adds to running text: possibly part of a character (byte fallback),
  // empty for control tokens, and with the leading space of a word kept. Requires: 0 <= id <
  // VocabularySize().
  virtual std::string_view TokenBytes(int32_t id) const = 0;

  // The token as its vocabulary spells it, for people: "▁the", "<0x0A>", "</s>". Requires: as
  // TokenBytes.
  virtual std::string_view TokenPiece(int32_t id) const = 0;

  virtual bool IsControl(int32_t id) const = 0;
  virtual int32_t VocabularySize() const = 0;
  virtual bool AddsBos() const = 0;
  virtual std::optional<int32_t> BosId() const = 0;
  virtual std::optional<int32_t> EosId() const = 0;
};

// What the model's family knows and the tokenizer files may leave open.
struct TokenizerDefaults {
  bool add_bos = false;
  std::optional<int32_t> bos_id = std::nullopt;
  std::optional<int32_t> eos_id = std::nullopt;
};

// Reads tokenizer.json (preferred: fine-tunes add their tokens there) or tokenizer.model from a
// model folder, and tokenizer_config.json beside it for add_bos_token. NOT_FOUND when the folder
// has neither; DATA_LOSS or INVALID_ARGUMENT, naming the file and the field, when it cannot be
// used.
StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::filesystem::path& model_folder, const TokenizerDefaults& defaults
);

}  // namespace switchyard
