#include "tests/server/fake_tokenizer.h"

#include <utility>

#include "text/utf8.h"

namespace switchyard {

FakeTokenizer::FakeTokenizer(std::vector<std::string> pieces) {
  for (int byte = 0; byte < 256; ++byte) {
    pieces_.emplace_back(1, static_cast<char>(byte));
  }
  pieces_.emplace_back("<s>");
  pieces_.emplace_back("</s>");
  for (std::string& piece : pieces) {
    pieces_.push_back(std::move(piece));
  }
}

StatusOr<std::vector<int32_t>> FakeTokenizer::Encode(
    std::string_view text, const EncodeOptions& options
) const {
  std::vector<int32_t> ids;
  if (options.add_bos.value_or(false)) {
    ids.push_back(kBos);
  }
  if (options.parse_special && text == "</s>") {
    ids.push_back(kEos);
    return ids;
  }
  for (const char letter : text) {
    ids.push_back(static_cast<unsigned char>(letter));
  }
  return ids;
}

StatusOr<std::string> FakeTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (id < 0 || id >= VocabularySize()) {
      return InvalidArgument("token id ", id, " is not in [0, ", VocabularySize(), ")");
    }
    bytes += TokenBytes(id);
  }
  return ReplaceInvalidUtf8(bytes);
}

std::string_view FakeTokenizer::TokenBytes(int32_t id) const {
  return IsControl(id) ? std::string_view() : std::string_view(pieces_[static_cast<size_t>(id)]);
}

std::string_view FakeTokenizer::TokenPiece(int32_t id) const {
  return pieces_[static_cast<size_t>(id)];
}

}  // namespace switchyard
