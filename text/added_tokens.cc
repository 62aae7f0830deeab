#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace switchyard {
namespace {

using Entries = std::vector<std::pair<std::string, int32_t>>;

// Where the white space begins that `text` ends with.
size_t TrailingSpaceBegin(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t character = begin - 1;
    while (character > 0 && (static_cast<uint8_t>(text[character]) & 0xC0) == 0x80) {
      --character;
    }
    if (!IsUnicodeSpace(NextUtf8(text.substr(character)).code_point)) {
      break;
    }
    begin = character;
  }
  return begin;
}

size_t LeadingSpaceBytes(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(bytes));
    if (!IsUnicodeSpace(step.code_point)) {
      break;
    }
    bytes += step.bytes;
  }
  return bytes;
}

// Normalizing may make two tokens alike; the index needs each spelling once.
PrefixIndex IndexOf(Entries entries) {
  std::sort(entries.begin(), entries.end());
  const auto same_spelling = [](const auto& a, const auto& b) { return a.first == b.first; };
  entries.erase(std::unique(entries.begin(), entries.end(), same_spelling), entries.end());
  std::erase_if(entries, [](const auto& entry) { return entry.first.empty(); });
  return PrefixIndex(std::move(entries));
}

}  // namespace

StatusOr<AddedTokens> AddedTokens::Create(
    const std::optional<JsonField>& tokens,
    const std::function<std::string(std::string_view)>& normalize,
    Vocabulary& vocabulary
) {
  AddedTokens made;
  if (!tokens) {
    return made;
  }
  Entries raw;
  Entries normalized;
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, tokens->Elements());
  for (const JsonField& token : elements) {
    ASSIGN_OR_RETURN(const int32_t id, token.RequireId("id"));
    ASSIGN_OR_RETURN(const std::string content, token.RequireString("content"));
    ASSIGN_OR_RETURN(const bool special, token.BoolOr("special", false));
    ASSIGN_OR_RETURN(const bool is_normalized, token.BoolOr("normalized", false));
    ASSIGN_OR_RETURN(const bool single_word, token.BoolOr("single_word", false));
    Stripping stripping;
    ASSIGN_OR_RETURN(stripping.left, token.BoolOr("lstrip", false));
    ASSIGN_OR_RETURN(stripping.right, token.BoolOr("rstrip", false));
    if (single_word) {
      return Unimplemented(token.Where(), ".single_word is true, which is not supported");
    }
    if (content.empty()) {
      return InvalidArgument(token.Where(), ".content is empty");
    }
    RETURN_IF_ERROR(vocabulary.Add(content, id, token.Where()));
    made.stripping_[id] = stripping;
    if (special) {
      made.special_ids_.insert(id);
    }
    if (is_normalized) {
      made.normalized_spellings_[id] = normalize(content);
      normalized.emplace_back(made.normalized_spellings_[id], id);
    } else {
      raw.emplace_back(content, id);
    }
  }
  made.raw_ = IndexOf(std::move(raw));
  made.normalized_ = IndexOf(std::move(normalized));
  return made;
}

std::optional<std::string> AddedTokens::NormalizedSpelling(int32_t id) const {
  const auto found = normalized_spellings_.find(id);
  return found == normalized_spellings_.end() ? std::nullopt
                                              : std::optional<std::string>(found->second);
}

std::vector<AddedTokens::Piece> AddedTokens::SplitRaw(std::string_view text, bool parse_special)
    const {
  return Split(raw_, text, parse_special);
}

std::vector<AddedTokens::Piece> AddedTokens::SplitNormalized(
    std::string_view text, bool parse_special
) const {
  return Split(normalized_, text, parse_special);
}

std::vector<AddedTokens::Piece> AddedTokens::Split(
    const PrefixIndex& index, std::string_view text, bool parse_special
) const {
  std::vector<Piece> pieces;
  size_t done = 0;  // everything before this is in `pieces`
  size_t position = index.IsEmpty() ? text.size() : 0;
  while (position < text.size()) {
    const auto match = index.Longest(text.substr(position));
    if (!match) {
      position += NextUtf8(text.substr(position)).bytes;
      continue;
    }
    // The search goes on behind the spelling, even where the token swallows the spaces that follow.
    size_t begin = position;
    size_t end = position + match->bytes;
    position = end;
    if (!parse_special && special_ids_.contains(match->id)) {
      continue;
    }
    const Stripping& stripping = stripping_.at(match->id);
    if (stripping.left) {
      begin = TrailingSpaceBegin(text.substr(0, begin));
    }
    begin = std::max(begin, done);
    if (stripping.right) {
      end += LeadingSpaceBytes(text.substr(end));
    }
    if (done < begin) {
      pieces.push_back({.text = text.substr(done, begin - done), .id = std::nullopt});
    }
    pieces.push_back({.text = text.substr(begin, std::max(begin, end) - begin), .id = match->id});
    done = std::max(begin, end);
  }
  if (done < text.size()) {
    pieces.push_back({.text = text.substr(done), .id = std::nullopt});
  }
  return pieces;
}

}  // namespace switchyard
