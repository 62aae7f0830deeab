#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/prefix_index.h"
#include "text/vocabulary.h"

namespace switchyard {

// The "added_tokens" of a tokenizer.json: tokens found by their spelling before the text is split
// into words. Immutable and thread-safe once read.
class AddedTokens {
 public:
  // A stretch of the text, or with an id a token that was found there.
  struct Piece {
    std::string_view text;
    std::optional<int32_t> id;
  };

  // `tokens` may be absent. Adds them to `vocabulary`; `normalize` is the tokenizer's normalizer.
  // INVALID_ARGUMENT or UNIMPLEMENTED, naming file and field.
  static StatusOr<AddedTokens> Create(
      const std::optional<JsonField>& tokens,
      const std::function<std::string(std::string_view)>& normalize,
      Vocabulary& vocabulary
  );

  // Cuts `text` at the tokens that are looked for before normalization, or after it. The leftmost
  // token goes first, of several the longest. Special tokens are only recognised with
  // `parse_special`; without it their text is left alone, so that no other token is found inside of
  // it either. No piece is empty, except for a token's.
  std::vector<Piece> SplitRaw(std::string_view text, bool parse_special) const;
  std::vector<Piece> SplitNormalized(std::string_view text, bool parse_special) const;

  // What the token stands for in decoded text, before decoding: a token that is looked for after
  // normalization consumes, and so gives back, its normalized spelling. Nothing for all other
  // tokens.
  std::optional<std::string> NormalizedSpelling(int32_t id) const;

  // Ids of special tokens: control tokens, which decode to nothing.
  const std::unordered_set<int32_t>& SpecialIds() const { return special_ids_; }

 private:
  struct Stripping {
    bool left = false;   // the token swallows white space before it
    bool right = false;  // ... and behind it
  };

  AddedTokens() = default;
  std::vector<Piece> Split(const PrefixIndex& index, std::string_view text, bool parse_special)
      const;

  PrefixIndex raw_;
  PrefixIndex normalized_;
  std::unordered_map<int32_t, Stripping> stripping_;
  std::unordered_map<int32_t, std::string> normalized_spellings_;
  std::unordered_set<int32_t> special_ids_;
};

}  // namespace switchyard
