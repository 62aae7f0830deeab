#pragma once

#include <cstdint>

namespace switchyard {

// A block of the KV cache. The same id stands for the same block in every layer.
enum class BlockId : int32_t {};

}  // namespace switchyard
