#include "tests/text/sentencepiece_library.h"

#include <sentencepiece_processor.h>

namespace switchyard {

struct SentencePieceLibrary::Processor {
  sentencepiece::SentencePieceProcessor library;
};

SentencePieceLibrary::SentencePieceLibrary(const std::string& model_path)
    : processor_(std::make_unique<Processor>()) {
  processor_->library.Load(model_path).IgnoreError();
}

SentencePieceLibrary::~SentencePieceLibrary() = default;

bool SentencePieceLibrary::IsLoaded() const {
  return processor_->library.status().ok();
}

std::vector<int32_t> SentencePieceLibrary::Encode(const std::string& text) const {
  return processor_->library.EncodeAsIds(text);
}

std::string SentencePieceLibrary::Decode(const std::vector<int32_t>& ids) const {
  return processor_->library.DecodeIds(ids);
}

int32_t SentencePieceLibrary::VocabularySize() const {
  return processor_->library.GetPieceSize();
}
std::string SentencePieceLibrary::Piece(int32_t id) const {
  return processor_->library.IdToPiece(id);
}
bool SentencePieceLibrary::IsControl(int32_t id) const {
  return processor_->library.IsControl(id);
}
int32_t SentencePieceLibrary::BosId() const {
  return processor_->library.bos_id();
}
int32_t SentencePieceLibrary::EosId() const {
  return processor_->library.eos_id();
}

}  // namespace switchyard
