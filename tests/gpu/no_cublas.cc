#include "tests/gpu/cublas_rate.h"

// For the stand-in, and for toolkits without cuBLAS.

namespace switchyard {

StatusOr<double> CublasRate(void* /*data*/, int64_t /*size*/, int /*repeats*/) {
  return Unavailable("this program was built without the headers of cuBLAS");
}

}  // namespace switchyard
