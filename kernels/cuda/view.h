#pragma once

#include "kernels/cuda/device.h"
#include "kernels/tensor.h"

// Tensors as kernels take them.

namespace switchyard {

inline Global<float> Floats(TensorView view) {
  return {view.f32(), view.elements()};
}
inline Global<const float> ConstFloats(TensorView view) {
  return {view.f32(), view.elements()};
}
inline Global<int32_t> Ints(TensorView view) {
  return {view.i32(), view.elements()};
}
inline Global<const int32_t> ConstInts(TensorView view) {
  return {view.i32(), view.elements()};
}
inline Global<int64_t> Longs(TensorView view) {
  return {view.i64(), view.elements()};
}

inline int64_t DivideUp(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit;
}
inline unsigned GridSize(int64_t blocks) {
  return static_cast<unsigned>(blocks);
}

}  // namespace switchyard
