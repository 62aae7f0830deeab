#pragma once

#include <filesystem>
#include <memory>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/tokenizer_settings.h"

namespace switchyard {

// A Hugging Face tokenizer.json with a BPE model, byte-level or Llama style. Encodes and decodes as
// the Hugging Face library does, special tokens in text apart (see EncodeOptions::parse_special).
// "truncation" and "padding" are not read: they shape training batches, not the mapping between
// text and tokens.
StatusOr<std::unique_ptr<Tokenizer>> LoadHuggingFaceTokenizer(
    const std::filesystem::path& path, const TokenizerSettings& settings
);

}  // namespace switchyard
