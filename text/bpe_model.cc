#include "text/bpe_model.h"

#include <utility>

#include "text/byte_alphabet.h"
#include "text/byte_piece.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

// One integer per pair makes the busiest look-up of encoding a cheap one.
uint64_t PairKey(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Merges are written "left right" or ["left", "right"]; only the second can spell tokens with
// spaces.
StatusOr<std::pair<std::string, std::string>> ReadMerge(const JsonField& field) {
  if (field.IsArray()) {
    ASSIGN_OR_RETURN(const std::vector<JsonField> sides, field.Elements());
    if (sides.size() != 2) {
      return InvalidArgument(field.Where(), " has ", sides.size(), " elements; expected 2");
    }
    ASSIGN_OR_RETURN(std::string left, sides[0].String());
    ASSIGN_OR_RETURN(std::string right, sides[1].String());
    return std::pair(std::move(left), std::move(right));
  }
  ASSIGN_OR_RETURN(const std::string both, field.String());
  const size_t space = both.find(' ');
  if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos) {
    return InvalidArgument(
        field.Where(), " is \"", both, "\"; expected two tokens with one space between"
    );
  }
  return std::pair(both.substr(0, space), both.substr(space + 1));
}

Status RefuseAffix(const JsonField& model, const std::string& key) {
  ASSIGN_OR_RETURN(const std::string affix, model.StringOr(key, ""));
  return affix.empty() ? OkStatus() : Unimplemented(model.Where(), ".", key, " is not supported");
}

}  // namespace

StatusOr<BpeModel> BpeModel::Create(
    const JsonField& model, const std::unordered_set<int32_t>& control_ids, Vocabulary& vocabulary
) {
  ASSIGN_OR_RETURN(const std::string type, model.StringOr("type", "BPE"));
  if (type != "BPE") {
    return Unimplemented(model.Where(), ".type is ", type, "; this server reads BPE");
  }
  BpeModel made;
  RETURN_IF_ERROR(made.ReadOptions(model));
  RETURN_IF_ERROR(made.ReadVocabulary(model, control_ids, vocabulary));
  RETURN_IF_ERROR(made.ReadMerges(model, control_ids, vocabulary));
  return made;
}

Status BpeModel::ReadOptions(const JsonField& model) {
  RETURN_IF_ERROR(RefuseAffix(model, "continuing_subword_prefix"));
  RETURN_IF_ERROR(RefuseAffix(model, "end_of_word_suffix"));
  // Dropout randomises training; with it, the same prompt would get different ids.
  ASSIGN_OR_RETURN(const std::optional<JsonField> dropout, model.Find("dropout"));
  if (dropout && !dropout->IsZero()) {
    return Unimplemented(dropout->Where(), " is not supported; set it to null");
  }
  ASSIGN_OR_RETURN(fuse_unknown_, model.BoolOr("fuse_unk", false));
  ASSIGN_OR_RETURN(byte_fallback_, model.BoolOr("byte_fallback", false));
  ASSIGN_OR_RETURN(ignore_merges_, model.BoolOr("ignore_merges", false));
  ASSIGN_OR_RETURN(const std::optional<JsonField> unknown, model.Find("unk_token"));
  if (unknown) {
    ASSIGN_OR_RETURN(unknown_token_, unknown->String());
  }
  return OkStatus();
}

Status BpeModel::ReadVocabulary(
    const JsonField& model, const std::unordered_set<int32_t>& control_ids, Vocabulary& vocabulary
) {
  ASSIGN_OR_RETURN(const JsonField vocab, model.Require("vocab"));
  ASSIGN_OR_RETURN(const auto members, vocab.Members());
  for (const auto& [piece, field] : members) {
    ASSIGN_OR_RETURN(const int32_t id, field.Id());
    RETURN_IF_ERROR(vocabulary.Add(piece, id, field.Where()));
    if (!control_ids.contains(id)) {
      ids_.emplace(piece, id);
    }
  }
  if (unknown_token_) {
    const std::optional<int32_t> id = vocabulary.Find(*unknown_token_);
    if (!id) {
      return InvalidArgument(
          model.Where(), ".unk_token is \"", *unknown_token_, "\", which is not in the vocabulary"
      );
    }
    unknown_id_ = *id;
  }
  return OkStatus();
}

Status BpeModel::ReadMerges(
    const JsonField& model,
    const std::unordered_set<int32_t>& control_ids,
    const Vocabulary& vocabulary
) {
  ASSIGN_OR_RETURN(const std::vector<JsonField> fields, model.RequireElements("merges"));
  merges_.reserve(fields.size());
  for (size_t rank = 0; rank < fields.size(); ++rank) {
    ASSIGN_OR_RETURN(const auto sides, ReadMerge(fields[rank]));
    const std::optional<int32_t> left = vocabulary.Find(sides.first);
    const std::optional<int32_t> right = vocabulary.Find(sides.second);
    const std::optional<int32_t> joined = vocabulary.Find(sides.first + sides.second);
    if (!left || !right || !joined) {
      const std::string& missing = !left    ? sides.first
                                   : !right ? sides.second
                                            : sides.first + sides.second;
      return InvalidArgument(
          fields[rank].Where(), " needs the token \"", missing, "\", which is not in the vocabulary"
      );
    }
    // A pair that is listed twice counts with its last rank, as in the library.
    if (!control_ids.contains(*joined)) {
      merges_.insert_or_assign(
          PairKey(*left, *right), BpeMerge{.id = *joined, .cost = static_cast<double>(rank)}
      );
    }
  }
  return OkStatus();
}

std::optional<int32_t> BpeModel::Find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

bool BpeModel::AppendBytes(
    std::string_view word, size_t begin, size_t bytes, std::vector<BpeSymbol>& symbols
) const {
  const size_t symbols_before = symbols.size();
  for (size_t i = begin; i < begin + bytes; ++i) {
    const std::optional<int32_t> id = Find(BytePiece(static_cast<uint8_t>(word[i])));
    if (!id) {
      symbols.resize(symbols_before);
      return false;
    }
    symbols.push_back({.id = *id, .begin = i, .bytes = 1});
  }
  return true;
}

// The start: a token for each character; where there is none, tokens for its bytes; where those
// lack too, the unknown token.
std::vector<BpeSymbol> BpeModel::Symbols(std::string_view word) const {
  std::vector<BpeSymbol> symbols;
  symbols.reserve(word.size());
  bool follows_unknown = false;
  size_t begin = 0;
  while (begin < word.size()) {
    const size_t bytes = NextUtf8(word.substr(begin)).bytes;
    const std::optional<int32_t> id = Find(word.substr(begin, bytes));
    bool is_unknown = false;
    if (id) {
      symbols.push_back({.id = *id, .begin = begin, .bytes = bytes});
    } else if (!byte_fallback_ || !AppendBytes(word, begin, bytes, symbols)) {
      is_unknown = true;
      if (follows_unknown && fuse_unknown_) {
        symbols.back().bytes += bytes;
      } else {
        symbols.push_back({.id = unknown_id_, .begin = begin, .bytes = bytes});
      }
    }
    follows_unknown = is_unknown;
    begin += bytes;
  }
  return symbols;
}

void BpeModel::AppendEncoded(std::string_view word, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    if (const std::optional<int32_t> id = Find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<BpeSymbol> symbols = Symbols(word);
  MergeSymbols(symbols, [this](const BpeSymbol& left, const BpeSymbol& right) {
    const auto found = merges_.find(PairKey(left.id, right.id));
    return found == merges_.end() ? std::nullopt : std::optional<BpeMerge>(found->second);
  });
  for (const BpeSymbol& symbol : symbols) {
    ids.push_back(symbol.id);
  }
}

Status BpeModel::CheckCoverage(bool is_byte_level, const std::string& where) const {
  if (unknown_token_) {
    return OkStatus();
  }
  if (!is_byte_level && !byte_fallback_) {
    return InvalidArgument(
        where,
        " has neither unk_token nor byte_fallback; characters outside its vocabulary would be lost"
    );
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<uint8_t>(byte);
    const std::string piece = is_byte_level ? std::string(ByteCharacter(value)) : BytePiece(value);
    if (!Find(piece)) {
      return InvalidArgument(
          where,
          ".vocab lacks \"",
          piece,
          "\", the token of byte ",
          byte,
          ", and there is no unk_token"
      );
    }
  }
  return OkStatus();
}

}  // namespace switchyard
