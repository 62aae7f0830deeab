#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/attention_chunk.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/staging.h"
#include "kernels/ops.h"

namespace switchyard {

// The CUDA backend: one device, one stream. Verbs queue work and return; results of routing never
// leave the device. The first fault is kept: from then on verbs do nothing, Allocate() and Finish()
// return it. Each verb has a file of its own here.
class CudaOps final : public Ops {
 public:
  // UNAVAILABLE when the machine has no such device.
  static StatusOr<std::unique_ptr<Ops>> Create(int device, bool graphs);
  CudaOps(const CudaOps&) = delete;
  CudaOps& operator=(const CudaOps&) = delete;
  ~CudaOps() override;

  const char* Name() const override { return "cuda"; }

  int64_t AvailableBytes() const override;
  StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  void Upload(const void* host, void* device, int64_t bytes) override;
  void Download(const void* device, void* host, int64_t bytes) override;
  void Copy(const void* from, void* to, int64_t bytes) override;
  Weight AddWeight(const WeightSource& source) override;
  int64_t WeightBytesRead() const override;

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
  Status Finish() override;
  bool KeepsWorkMemory() const override { return true; }
  std::unique_ptr<VerbRecorder> MakeRecorder() override;
  int64_t PackedSelectionBytes(const SelectTokensArgs& args) const override;
  void PackSelection(const SelectTokensArgs& args, void* host) const override;

 private:
  class GraphRecorder;

  // A weight as the device has it. Vectors are widened to float32; matrices are [experts, out,
  // padded in] whatever the checkpoint's layout, the padding zeros.
  struct StoredWeight {
    DType dtype = DType::kF32;
    int64_t padded_in = 0;
    int64_t source_bytes = 0;  // in the checkpoint
    std::unique_ptr<DeviceMemory> memory;
  };
  struct RopeTable {
    int64_t dims = 0;
    float base = 0;
    std::unique_ptr<DeviceMemory> frequencies;  // float32 [dims / 2]
  };

  CudaOps(int device, bool graphs) : device_(device), graphs_(graphs) {}
  Status Initialize();

  // Keeps the first failure; true when there is none at all.
  bool Note(const Status& status);
  bool NoteLaunch(const char* kernel) { return Note(CudaStatus(cudaGetLastError(), kernel)); }
  // Null after a failure, which it keeps.
  void* Grow(GrowingMemory& memory, int64_t bytes);

  Status Store(const WeightSource& source, const Weight& weight, StoredWeight& stored);
  Status StoreMatrix(const WeightSource& source, const Weight& weight, StoredWeight& stored);
  Status StoreVector(const WeightSource& source, StoredWeight& stored);
  // The tensor as it is, wherever it lies.
  Status StoreBytes(const WeightSource& source, void* target);
  const StoredWeight& StoredOf(const Weight& weight) const;
  // Absent when the weight is.
  Global<const float> VectorOf(const Weight& weight) const;
  void CountWeightBytes(const Weight& weight);

  // Fills in the weight and runs whatever kernel it asks for.
  void RunProducts(const Weight& weight, ProductArgs args, int64_t rows);
  void RunAttention(AttentionArgs& args, int64_t tokens);
  // What PackSelection makes, on the device: as it came, or sent there now.
  const char* PackedInputs(const SelectTokensArgs& args, int64_t bytes);
  void UnpackResults(const SelectTokensArgs& args, const SelectedTokens& out, int64_t rows) const;
  Global<const float> RopeFrequencies(const RopeArgs& args);

  int device_;
  bool graphs_;
  int multiprocessors_ = 1;
  int64_t max_shared_bytes_ = 0;
  Status status_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Staging> staging_;
  std::vector<StoredWeight> weights_;
  std::vector<RopeTable> rope_tables_;
  int64_t host_weight_bytes_ = 0;               // of verbs whose bytes the host knows
  std::unique_ptr<DeviceMemory> expert_bytes_;  // int64: of those whose bytes the routing decides
  int64_t work_memory_epoch_ = 0;               // how often memory of the verbs has moved
  GrowingMemory pack_source_;
  GrowingMemory products_;
  GrowingMemory attention_partials_;
  GrowingMemory select_inputs_;
  GrowingMemory select_logits_;
  GrowingMemory select_results_;
  std::vector<uint8_t> select_host_;
};

}  // namespace switchyard
