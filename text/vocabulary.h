#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/status.h"

namespace switchyard {

// Lets maps keyed by std::string be asked with a string_view, without a copy.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using PieceIds = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

// More would be refused as a mistake: the largest published vocabularies have 0.3 million tokens.
inline constexpr int32_t kMaxVocabularySize = 1 << 24;

// Token spellings by id, without holes. Filled once, then read from any thread.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // INVALID_ARGUMENT, starting with `where`, when the id or the spelling is taken by a different
  // token or the id is out of range. Adding the same token twice is fine.
  Status Add(const std::string& piece, int32_t id, const std::string& where);

  // INVALID_ARGUMENT, starting with `where`, when some id below the largest one has no token.
  Status CheckComplete(const std::string& where) const;

  std::optional<int32_t> Find(std::string_view piece) const;
  int32_t Size() const { return static_cast<int32_t>(pieces_.size()); }

  // Requires: 0 <= id < Size().
  const std::string& Piece(int32_t id) const {
    CHECK(id >= 0 && id < Size()) << "id=" << id << " size=" << Size();
    return *pieces_[static_cast<size_t>(id)];
  }

 private:
  PieceIds ids_;
  std::vector<const std::string*> pieces_;  // keys of ids_, which never move; null is a hole
};

// INVALID_ARGUMENT unless 0 <= id < size, for each id.
template <typename Ids>
Status CheckIds(const Ids& ids, int32_t size) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= size) {
      return InvalidArgument(
          "token id ", id, " is outside the vocabulary; ids lie in [0, ", size, ")"
      );
    }
  }
  return OkStatus();
}

}  // namespace switchyard
