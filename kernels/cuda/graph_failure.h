#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace switchyard {

// A warning that decode steps are slower from now on, and why. Apart from the recorder, because
// nvcc does not take the logger's headers.
void LogGraphsGivenUp(cudaError_t error, int64_t recordings, int64_t free_bytes);

}  // namespace switchyard
