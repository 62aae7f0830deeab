#pragma once

#include <memory>
#include <vector>

#include "kernels/ops.h"
#include "kernels/reference/sampling_distribution.h"

namespace switchyard {

// The executable definition of every verb: plain loops, one thread, sums in float32 in ascending
// order unless the verb says otherwise. Each verb has a file of its own in this folder. Kept simple
// on purpose; cpu/ overrides what is worth a fast path and inherits the rest.
class ReferenceOps : public Ops {
 public:
  const char* Name() const override { return "reference"; }

  int64_t AvailableBytes() const override;
  StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  void Upload(const void* host, void* device, int64_t bytes) override;
  void Download(const void* device, void* host, int64_t bytes) override;
  void Copy(const void* from, void* to, int64_t bytes) override;
  Weight AddWeight(const WeightSource& source) override;
  int64_t WeightBytesRead() const override { return weight_bytes_read_; }

  void Embed(const Weight& table, TensorView token_ids, float scale, TensorView out) override;
  void Normalize(const NormalizeArgs& args, TensorView input, TensorView out) override;
  void MatMul(const MatMulArgs& args, TensorView input, TensorView out) override;
  void SelectExperts(GateKind gate, TensorView scores, const Routing& out) override;
  void GroupByExpert(TensorView phases, const RouterCounters& counters, const GroupedRouting& out)
      override;
  void ExpertMatMul(const ExpertMatMulArgs& args, TensorView out) override;
  void Rope(const RopeArgs& args, TensorView heads) override;
  void StoreKv(const StoreKvArgs& args) override;
  void PagedAttention(const PagedAttentionArgs& args, TensorView out) override;
  void Activate(const ActivateArgs& args, TensorView input, TensorView out) override;
  void Add(TensorView x, TensorView update) override;
  void SelectTokens(const SelectTokensArgs& args, const SelectedTokens& out) override;
  Status Finish() override { return OkStatus(); }

 protected:
  // Requires: the weight came from this object's AddWeight.
  const WeightSource& SourceOf(const Weight& weight) const;
  void CountWeightBytes(int64_t bytes) { weight_bytes_read_ += bytes; }

  // The logarithm of the sum of exp(logits[i]), all finite; called once for every token chosen.
  virtual double LogSumExp(const float* logits, int64_t vocabulary) const;

  // The weight of one output feature of matrix `expert` as float32 [in_features], in scratch that
  // the next call overwrites.
  const float* WidenedFeature(const Weight& weight, int64_t expert, int64_t feature);
  // A vector, or row `row` of a vector stack; all zeros when the weight is absent.
  std::vector<float> WidenedVector(const Weight& weight, int64_t row, int64_t dim) const;

 private:
  std::vector<WeightSource> weights_;
  int64_t weight_bytes_read_ = 0;
  // Kept between calls so that a step allocates nothing once they have grown.
  std::vector<float> feature_scratch_;
  std::vector<float> row_scratch_;
  std::vector<Candidate> candidates_;
};

}  // namespace switchyard
