#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/attention_task.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {

// The fast CPU backend. Weights are read where the checkpoint lies in memory, never copied, apart
// from the vectors. Each verb it overrides has a file of its own here; SIMD is in the *_kernels.cc
// files. Results depend on the instruction set, and on nothing else that ops.h does not name.
class CpuOps final : public ReferenceOps {
 public:
  explicit CpuOps(std::unique_ptr<ThreadPool> pool);

  const char* Name() const override { return "cpu"; }
  Weight AddWeight(const WeightSource& source) override;

  void Embed(const Weight& table, TensorView token_ids, float scale, TensorView out) override;
  void Normalize(const NormalizeArgs& args, TensorView input, TensorView out) override;
  void MatMul(const MatMulArgs& args, TensorView input, TensorView out) override;
  void ExpertMatMul(const ExpertMatMulArgs& args, TensorView out) override;
  void Rope(const RopeArgs& args, TensorView heads) override;
  void PagedAttention(const PagedAttentionArgs& args, TensorView out) override;
  void Activate(const ActivateArgs& args, TensorView input, TensorView out) override;
  void Add(TensorView x, TensorView update) override;
  void SelectTokens(const SelectTokensArgs& args, const SelectedTokens& out) override;

 private:
  // Rows that one matrix takes, as a range of the pointer arrays given to RunProducts.
  struct ProductGroup {
    WeightMatrix matrix;
    const float* bias = nullptr;  // [out_features]; may be null
    int64_t row_begin = 0;
    int64_t row_end = 0;
  };
  struct ProductTask {
    int64_t group = 0;
    int64_t row_begin = 0;
    int64_t row_end = 0;
    Columns columns;
  };
  // Chooses tokens as the reference does, but adds up the vocabulary faster.
  class TokenSelector final : public ReferenceOps {
   protected:
    double LogSumExp(const float* logits, int64_t vocabulary) const override;
  };
  // Rows at one distance from each other.
  struct Rows {
    const float* data = nullptr;
    int64_t stride = 0;
  };

  WeightMatrix MatrixOf(const Weight& weight, int64_t expert) const;
  // A vector, or row `row` of a vector stack, as float32; null when the weight is absent.
  const float* VectorOf(const Weight& weight, int64_t row) const;
  // The input as `matrix` wants it, in prepared_ if that differs.
  Rows PreparedInput(const WeightMatrix& matrix, TensorView input);
  // Runs groups_ over all threads.
  void RunProducts(const float* const* inputs, float* const* outputs);
  void AddProductTasks(int64_t group);
  // Products of all assignments, assignment a's at products + a * out_features.
  void RunExpertProducts(const ExpertMatMulArgs& args, int64_t input_span, float* products);
  // Fills attention_tasks_.
  void FindAttentionTasks(const PagedAttentionArgs& args);
  // The cosines and sines of every (token, pair) in rope_table_, kept while the positions stay.
  void FillRopeTable(const RopeArgs& args);

  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::vector<float>> vectors_;  // by weight index; empty for matrices
  std::vector<TokenSelector> selectors_;     // one for each thread: SelectTokens uses scratch

  std::vector<ProductGroup> groups_;
  std::vector<ProductTask> tasks_;
  std::vector<AttentionTile> attention_tiles_;  // of prompts
  std::vector<std::pair<AttentionTile, HeadRange>> attention_tasks_;
  std::vector<Scratch> worker_scratch_;  // one for each thread
  Scratch prepared_;
  Scratch input_pointers_;
  Scratch output_pointers_;
  Scratch products_;

  std::vector<int32_t> rope_positions_;
  std::vector<float> rope_table_;  // [tokens, rotary_dims / 2, 2]
  int64_t rope_dims_ = 0;
  float rope_base_ = 0;
};

// Requires: threads >= 0; 0 means one for each core that this process may run on.
StatusOr<std::unique_ptr<Ops>> MakeCpuOps(int threads);

}  // namespace switchyard
