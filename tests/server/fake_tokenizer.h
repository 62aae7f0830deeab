#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace switchyard {

// Token ids 0..255 are the bytes of those values, 256 is <s>, 257 is </s>, and 258 onwards are the
// pieces it was given. Text is encoded byte by byte.
class FakeTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kBos = 256;
  static constexpr int32_t kEos = 257;
  static constexpr int32_t kFirstPiece = 258;

  explicit FakeTokenizer(std::vector<std::string> pieces);

  StatusOr<std::vector<int32_t>> Encode(std::string_view text, const EncodeOptions& options)
      const override;
  StatusOr<std::string> Decode(std::span<const int32_t> ids) const override;
  std::string_view TokenBytes(int32_t id) const override;
  std::string_view TokenPiece(int32_t id) const override;
  bool IsControl(int32_t id) const override { return id == kBos || id == kEos; }
  int32_t VocabularySize() const override { return static_cast<int32_t>(pieces_.size()); }
  bool AddsBos() const override { return false; }
  std::optional<int32_t> BosId() const override { return kBos; }
  std::optional<int32_t> EosId() const override { return kEos; }

 private:
  std::vector<std::string> pieces_;  // by id
};

}  // namespace switchyard
