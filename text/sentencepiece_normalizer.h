#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/prefix_index.h"
#include "text/sentencepiece_model.h"

namespace switchyard {

// Brings text into the form a SentencePiece model was trained on: characters replaced by the
// model's rules, white space trimmed, spaces written as metaspaces, one put in front. Immutable and
// thread-safe.
class SentencePieceNormalizer {
 public:
  // INVALID_ARGUMENT, naming the file and field, when the replacement rules are garbled.
  static StatusOr<SentencePieceNormalizer> Create(
      const SentencePieceModel& model, const std::string& file_name
  );

  // Whether text comes first or goes on behind other text: then its white space in front is not
  // trimmed but shrunk to one space, and no other is put there.
  enum class Place : uint8_t { kStart, kContinuation };

  // Strings in `verbatim` pass through unchanged. Requires: text is valid UTF-8.
  std::string Normalize(std::string_view text, Place place, const PrefixIndex& verbatim) const;

 private:
  struct Replacement {
    std::string_view text;
    size_t consumed_bytes = 0;
  };

  SentencePieceNormalizer() = default;
  Replacement ReplaceFront(std::string_view text, const PrefixIndex& verbatim) const;
  Replacement LongestRule(std::string_view text) const;

  // The rules are a double-array trie over what is replaced, in the layout of the Darts-clone
  // library, whose values are offsets into `replacements_`, a row of zero-terminated strings.
  std::vector<uint32_t> trie_;
  std::string replacements_;
  bool add_dummy_prefix_ = true;
  bool remove_extra_whitespaces_ = true;
  std::string space_;  // what a space becomes
};

}  // namespace switchyard
