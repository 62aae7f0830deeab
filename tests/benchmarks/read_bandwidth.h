#pragma once

#include <cstdint>

#include "kernels/cpu/thread_pool.h"

namespace switchyard {

// What this machine can read at the moment, the yardstick of every memory-bound kernel: bytes per
// second of summing `bytes` at `data` with all threads of the pool, median of `repeats`.
double ReadBandwidth(ThreadPool& pool, const void* data, int64_t bytes, int repeats);

}  // namespace switchyard
