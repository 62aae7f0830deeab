#pragma once

#include <filesystem>
#include <memory>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/tokenizer_settings.h"

namespace switchyard {

// A SentencePiece .model file. Encodes and decodes as the SentencePiece library does, with one
// difference: pieces that the model's maker defined by hand ("user defined") are matched in text
// only with EncodeOptions::parse_special, because chat models keep their control words there. Text
// between control tokens found by parse_special is encoded as a text of its own.
StatusOr<std::unique_ptr<Tokenizer>> LoadSentencePieceTokenizer(
    const std::filesystem::path& path, const TokenizerSettings& settings
);

}  // namespace switchyard
