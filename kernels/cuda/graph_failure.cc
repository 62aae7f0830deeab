#include "kernels/cuda/graph_failure.h"

#include "base/log.h"

namespace switchyard {

void LogGraphsGivenUp(cudaError_t error, int64_t recordings, int64_t free_bytes) {
  LogWarning(
      "event=cuda_graphs_given_up reason=\"{}\" recordings={} free_bytes={}",
      cudaGetErrorString(error),
      recordings,
      free_bytes
  );
}

}  // namespace switchyard
