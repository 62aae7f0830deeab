#include "tests/gpu/cublas_rate.h"

#include <cublas_v2.h>
#include <dlfcn.h>

#include "tests/benchmarks/timing.h"

namespace switchyard {
namespace {

// Products that are queued between two waits.
constexpr int kProducts = 10;

// Spelled out, because the headers overload the name.
using GemmEx = cublasStatus_t (*)(
    cublasHandle_t,
    cublasOperation_t,
    cublasOperation_t,
    int,
    int,
    int,
    const void*,
    const void*,
    cudaDataType,
    int,
    const void*,
    cudaDataType,
    int,
    const void*,
    void*,
    cudaDataType,
    int,
    cublasComputeType_t,
    cublasGemmAlgo_t
);

// Found at run time: the program also runs where only a driver is, which this then says.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  GemmEx product = nullptr;
};

StatusOr<Cublas> OpenCublas() {
  void* library = nullptr;
  // Where the loader looks, and the toolkit's usual place.
  for (const char* name :
       {"libcublas.so.13",
        "libcublas.so.12",
        "libcublas.so",
        "/usr/local/cuda/lib64/libcublas.so"}) {
    library = library == nullptr ? dlopen(name, RTLD_NOW) : library;
  }
  if (library == nullptr) {
    return Unavailable("no cuBLAS: ", dlerror());
  }
  const Cublas cublas = {
      .create = reinterpret_cast<decltype(Cublas::create)>(dlsym(library, "cublasCreate_v2")),
      .destroy = reinterpret_cast<decltype(Cublas::destroy)>(dlsym(library, "cublasDestroy_v2")),
      .product = reinterpret_cast<decltype(Cublas::product)>(dlsym(library, "cublasGemmEx"))};
  if (cublas.create == nullptr || cublas.destroy == nullptr || cublas.product == nullptr) {
    return Unavailable("no cuBLAS: libcublas lacks cublasCreate_v2, Destroy_v2 or GemmEx");
  }
  return cublas;
}

}  // namespace

StatusOr<double> CublasRate(void* data, int64_t size, int repeats) {
  ASSIGN_OR_RETURN(const Cublas cublas, OpenCublas());
  cublasHandle_t handle = nullptr;
  if (cublas.create(&handle) != CUBLAS_STATUS_SUCCESS) {
    return Unavailable("no cuBLAS: cublasCreate failed");
  }
  const auto n = static_cast<int>(size);
  auto* const a = static_cast<uint16_t*>(data);
  auto* const b = a + size * size;
  auto* const c = b + size * size;
  const float one = 1;
  const float zero = 0;
  bool is_ok = true;
  const double seconds = MedianSeconds(repeats, [&] {
    for (int product = 0; product < kProducts; ++product) {
      const cublasStatus_t status = cublas.product(
          handle,
          CUBLAS_OP_T,
          CUBLAS_OP_N,
          n,
          n,
          n,
          &one,
          a,
          CUDA_R_16BF,
          n,
          b,
          CUDA_R_16BF,
          n,
          &zero,
          c,
          CUDA_R_16BF,
          n,
          CUBLAS_COMPUTE_32F,
          CUBLAS_GEMM_DEFAULT
      );
      is_ok = is_ok && status == CUBLAS_STATUS_SUCCESS;
    }
    is_ok = is_ok && cudaDeviceSynchronize() == cudaSuccess;
  });
  cublas.destroy(handle);
  if (!is_ok) {
    return Unavailable("no cuBLAS: a product of ", size, " x ", size, " failed");
  }
  const auto edge = static_cast<double>(size);
  return 2 * edge * edge * edge * kProducts / seconds;
}

}  // namespace switchyard
