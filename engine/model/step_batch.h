#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace switchyard {

// One step's work as a flat row of tokens: prefill chunks and single decode tokens of any number of
// sequences side by side, sequence after sequence. All arrays are in the backend's memory. A view
// of memory that the batch builder owns; valid for one step.
struct StepBatch {
  int64_t tokens = 0;
  int64_t sequences = 0;
  TensorView token_ids;  // int32 [tokens]
  TensorView positions;  // int32 [tokens], absolute in their sequence
  TensorView phases;     // int32 [tokens], a Phase each: what the token's routing counts as
  TensorView slots;  // int32 [tokens]: where its key and value go, block * block_tokens + offset
  TensorView
      query_offsets;  // int32 [sequences + 1]: sequence s owns tokens offsets[s] .. offsets[s + 1]
  TensorView kv_lengths;    // int32 [sequences]: cached tokens, this step's included
  TensorView block_tables;  // int32 [sequences, max_blocks]; unused tail is -1
  TensorView logit_rows;    // int32 [rows]: the tokens whose logits are wanted, ascending
  // int32 [rows]: those whose logits are wanted to score the token after them, ascending
  TensorView scored_rows;
  // What Ops::PackSelection wrote for the step, in the backend's memory; null: nothing.
  const void* packed_selection = nullptr;
};

}  // namespace switchyard
