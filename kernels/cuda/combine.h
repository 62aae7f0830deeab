#pragma once

// What reductions do with two values. Types of their own, without state, so that the stand-in can
// run a reduction over a whole warp.

#if defined(__CUDACC__)
#define SWITCHYARD_DEVICE __device__ __forceinline__
#else
#define SWITCHYARD_DEVICE inline
#endif

namespace switchyard {

struct Sum {
  template <typename T>
  SWITCHYARD_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

struct Larger {
  template <typename T>
  SWITCHYARD_DEVICE T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

}  // namespace switchyard
