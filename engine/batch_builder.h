#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/model/step_batch.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "kernels/ops.h"

namespace switchyard {

// The largest step.
struct BatchLimits {
  int32_t max_step_tokens = 0;
  int32_t max_sequences = 0;
  int32_t max_blocks_per_sequence = 0;
  int32_t block_tokens = 0;
  // Room for what Ops::PackSelection makes; more of it is left to SelectTokens.
  int64_t selection_bytes = 0;
  // Steps of decodes alone have block tables of a power of two of blocks, so that few shapes occur.
  bool rounds_tables = false;
};

// Lays a step out as the flat arrays of StepBatch: written on the host into one array and uploaded
// in one copy, into memory that is sized at load. Used only by the engine thread.
class BatchBuilder {
 public:
  // RESOURCE_EXHAUSTED when the memory is not there. `ops` must outlive this.
  static StatusOr<BatchBuilder> Create(Ops& ops, const BatchLimits& limits);

  // Valid until the next Build. Row r of logit_rows belongs to the r-th slice that samples, and row
  // r of scored_rows to the r-th of the slices' scored positions.
  // `selection`: what will be asked of SelectTokens, to go up in the same copy; may be null.
  // Requires: the step is within the limits, and each sequence has the blocks its slice needs.
  StepBatch Build(
      std::span<const SequenceSlice> slices, const SelectTokensArgs* selection = nullptr
  );

 private:
  // A stretch of the host array; the same stretch of the device's holds its copy.
  struct Section {
    int64_t begin = 0;  // in int32s
    int64_t size = 0;
  };
  struct Sections {
    Section token_ids, positions, phases, slots;      // [tokens]
    Section query_offsets, kv_lengths, block_tables;  // [sequences + 1], [sequences], ...
    Section logit_rows, scored_rows;
    int64_t total = 0;
  };

  BatchBuilder(Ops& ops, const BatchLimits& limits, std::unique_ptr<Buffer> device);

  // The sizes of a step.
  struct Sizes {
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t blocks = 0;  // of the sequence with the most
    int64_t logit_rows = 0;
    int64_t scored_rows = 0;
  };
  Sizes SizesOf(std::span<const SequenceSlice> slices) const;
  static Sections Layout(const Sizes& sizes);
  static int64_t CapacityOf(const BatchLimits& limits);
  int32_t* Host(const Section& section) { return host_.data() + section.begin; }
  TensorView Device(const Section& section) const;
  void WriteTokens(const SequenceSlice& slice, const Sections& sections, int64_t first_row);
  // Appends it to the host array; 0 bytes when there is nothing or it has no room.
  int64_t WriteSelection(const SelectTokensArgs* selection, int64_t begin);

  Ops* ops_;
  BatchLimits limits_;
  std::vector<int32_t> host_;
  std::unique_ptr<Buffer> device_;
};

}  // namespace switchyard
