#pragma once

#include <cstdint>
#include <memory>

namespace switchyard {

// out[rows, out_features] = input[rows, in_features] * W^T by oneDNN in float32, with the weights
// packed once beforehand in the layout that oneDNN likes best.
class DnnlProduct {
 public:
  // False when this program was built without oneDNN.
  static bool IsAvailable();

  // Requires: IsAvailable(). `weights` is [out_features, in_features].
  DnnlProduct(int64_t rows, int64_t in_features, int64_t out_features, const float* weights);
  DnnlProduct(const DnnlProduct&) = delete;
  DnnlProduct& operator=(const DnnlProduct&) = delete;
  ~DnnlProduct();

  void Run(const float* input, float* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace switchyard
