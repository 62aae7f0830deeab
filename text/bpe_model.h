#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "text/bpe_merge.h"
#include "text/json_field.h"
#include "text/vocabulary.h"

namespace switchyard {

// The "model" of a tokenizer.json, type BPE: turns one pre-tokenized word into ids. Immutable and
// thread-safe.
class BpeModel {
 public:
  // Tokens whose id is in `control_ids` stay out of reach of every word, however it is spelled.
  // Adds the model's tokens to `vocabulary`. INVALID_ARGUMENT or UNIMPLEMENTED, naming file and
  // field.
  static StatusOr<BpeModel> Create(
      const JsonField& model, const std::unordered_set<int32_t>& control_ids, Vocabulary& vocabulary
  );

  void AppendEncoded(std::string_view word, std::vector<int32_t>& ids) const;

  // Whether every character, or every byte if words are spelled in the byte alphabet, has some id;
  // otherwise text would vanish silently. The status says what is missing, with `where` in front.
  Status CheckCoverage(bool is_byte_level, const std::string& where) const;

 private:
  BpeModel() = default;
  Status ReadOptions(const JsonField& model);
  Status ReadVocabulary(
      const JsonField& model, const std::unordered_set<int32_t>& control_ids, Vocabulary& vocabulary
  );
  Status ReadMerges(
      const JsonField& model,
      const std::unordered_set<int32_t>& control_ids,
      const Vocabulary& vocabulary
  );

  std::optional<int32_t> Find(std::string_view piece) const;
  std::vector<BpeSymbol> Symbols(std::string_view word) const;
  bool AppendBytes(
      std::string_view word, size_t begin, size_t bytes, std::vector<BpeSymbol>& symbols
  ) const;

  PieceIds ids_;                                   // without control tokens
  std::unordered_map<uint64_t, BpeMerge> merges_;  // by the two ids, left one in the upper half
  std::optional<std::string> unknown_token_;
  int32_t unknown_id_ = -1;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;  // a word that is a token as it stands is not split
};

}  // namespace switchyard
