#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace switchyard {

// Debian's SentencePiece library behind plain types: its header puts a string_view of its own into
// namespace absl, so no file can include both it and Abseil's headers.
class SentencePieceLibrary {
 public:
  explicit SentencePieceLibrary(const std::string& model_path);
  ~SentencePieceLibrary();

  bool IsLoaded() const;
  std::vector<int32_t> Encode(const std::string& text) const;
  std::string Decode(const std::vector<int32_t>& ids) const;
  int32_t VocabularySize() const;
  std::string Piece(int32_t id) const;
  bool IsControl(int32_t id) const;
  int32_t BosId() const;
  int32_t EosId() const;

 private:
  struct Processor;
  std::unique_ptr<Processor> processor_;
};

}  // namespace switchyard
