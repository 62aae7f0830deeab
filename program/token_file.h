#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace switchyard {

// The tensor `tokens` (I64 or I32, [T]) of a safetensors file. INVALID_ARGUMENT naming the file
// when there is none or a value cannot be a token id.
StatusOr<std::vector<int32_t>> ReadTokenFile(const std::string& path);

// "12,7,9", or the path of a file as above.
StatusOr<std::vector<int32_t>> ReadTokenList(const std::string& ids_or_path);

}  // namespace switchyard
