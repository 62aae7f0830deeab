#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace switchyard {

// Loads the bytes as the tokenizer file `file_name` of a model folder. What loads is used: every
// token is spelled, and texts made of the input are encoded and decoded, whole and token by token.
void LoadAndUseTokenizer(const std::string& file_name, const uint8_t* data, size_t bytes);

}  // namespace switchyard
