#pragma once

#include <cstdint>
#include <string>

#include "kernels/tensor.h"

namespace switchyard {

// How a matrix of a checkpoint lies in memory: [out, in] as a linear layer stores it (y = x W^T),
// or [in, out] as most expert stacks do (y = x W).
enum class WeightLayout : uint8_t { kOutIn, kInOut };

enum class WeightRole : uint8_t {
  kDense,        // [out, in] or [in, out]
  kExpertStack,  // [experts, out, in] or [experts, in, out]
  kEmbedding,    // [vocabulary, dim]
  kVector,       // [dim]: norms and biases
  kVectorStack,  // [experts, dim]: one bias for each expert
};

// Which memory a tensor lies in.
enum class TensorPlace : uint8_t {
  kHost,
  kBackend,  // of Ops::Allocate, of the backend that the tensor goes to
};

// A tensor of a checkpoint on its way to a backend. The memory stays valid and unchanged for the
// life of the Ops (weights are memory-mapped), so a backend may keep pointing at it.
struct WeightSource {
  WeightRole role = WeightRole::kDense;
  WeightLayout layout = WeightLayout::kOutIn;
  TensorView data;   // f32, f16 or bf16
  std::string name;  // the tensor's name in the checkpoint, for messages
  TensorPlace place = TensorPlace::kHost;
};

// A weight as the model sees it after Ops::AddWeight: a handle and its logical sizes. The backend
// keeps the data in whatever layout it likes.
struct Weight {
  int32_t index = -1;  // position in the backend's table; -1: no such weight
  WeightRole role = WeightRole::kDense;
  int64_t experts = 1;       // kExpertStack and kVectorStack
  int64_t in_features = 0;   // kEmbedding: vocabulary
  int64_t out_features = 0;  // kEmbedding, kVector, kVectorStack: dim

  bool exists() const { return index >= 0; }
};

}  // namespace switchyard
