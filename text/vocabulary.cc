#include "text/vocabulary.h"

namespace switchyard {

Status Vocabulary::Add(const std::string& piece, int32_t id, const std::string& where) {
  if (id < 0 || id >= kMaxVocabularySize) {
    return InvalidArgument(where, " has the id ", id, "; ids lie in [0, ", kMaxVocabularySize, ")");
  }
  // Files list tokens in any order, so ids may arrive with gaps that later tokens fill.
  const auto index = static_cast<size_t>(id);
  if (index >= pieces_.size()) {
    pieces_.resize(index + 1, nullptr);
  }
  const auto [entry, is_new] = ids_.try_emplace(piece, id);
  if (!is_new && entry->second != id) {
    return InvalidArgument(
        where,
        " gives the token \"",
        piece,
        "\" the id ",
        id,
        ", but it already has the id ",
        entry->second
    );
  }
  if (pieces_[index] != nullptr && *pieces_[index] != piece) {
    return InvalidArgument(
        where,
        " gives the token \"",
        piece,
        "\" the id ",
        id,
        ", which belongs to \"",
        *pieces_[index],
        "\""
    );
  }
  pieces_[index] = &entry->first;
  return OkStatus();
}

Status Vocabulary::CheckComplete(const std::string& where) const {
  for (size_t id = 0; id < pieces_.size(); ++id) {
    if (pieces_[id] == nullptr) {
      return InvalidArgument(
          where, " has ids up to ", pieces_.size() - 1, " but no token with the id ", id
      );
    }
  }
  return OkStatus();
}

std::optional<int32_t> Vocabulary::Find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

}  // namespace switchyard
