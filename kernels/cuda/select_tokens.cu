#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/check_select_tokens.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/choose_token.cuh"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"
#include "kernels/random.h"

namespace switchyard {

// A block for each row.
__global__ void __launch_bounds__(kSelectThreads) SelectTokensKernel(SelectArgs args) {
  SHARED_ARRAY(double, doubles, kSelectThreads / kWarpLanes);
  SHARED_ARRAY(uint64_t, ranks, kSelectThreads / kWarpLanes);
  SHARED_ARRAY(int64_t, integers, kSelectThreads);
  SHARED_ARRAY(int64_t, digits, kDigits);
  SHARED_ARRAY(int64_t, found, 2);
  const SelectMemory memory = {doubles, ranks, integers, {digits, found}};
  const int64_t row = blockIdx.x;
  const int64_t begin = row * args.vocabulary;
  const SelectTokensRow wanted = args.rows[row].row;
  const int64_t chosen =
      AllFinite(args, begin, memory) ? ChooseToken(args, row, wanted, memory) : kLogitsNotFinite;
  if (threadIdx.x == 0) {
    args.ids[row] = static_cast<int32_t>(chosen);
  }
  if (chosen < 0 || !args.logprobs.exists()) {
    return;
  }
  const double log_sum = LogSumExp(args, begin, memory);
  if (threadIdx.x == 0) {
    args.logprobs[row] = static_cast<float>(args.raw[begin + chosen] - log_sum);
  }
  FillTop(args, row, wanted.top_logprobs, log_sum, memory);
}

namespace {

// By the vocabulary alone, so that a row's sums never depend on the batch.
int ThreadsFor(int64_t vocabulary) {
  int threads = kWarpLanes;
  while (threads < kSelectThreads && threads * kTokensPerThread < vocabulary) {
    threads *= 2;
  }
  return threads;
}

// Arrays one after the other in one piece of memory, each 16-byte aligned.
class Layout {
 public:
  int64_t Place(int64_t bytes) {
    const int64_t begin = bytes_;
    bytes_ += DivideUp(bytes, 16) * 16;
    return begin;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

struct InputLayout {
  InputLayout(const SelectTokensArgs& args, int64_t row_count) : rows(row_count) {
    for (int64_t r = 0; r < rows; ++r) {
      const SelectTokensRow& row = args.rows[r];
      history = row.history_end > history ? row.history_end : history;
      bias = row.bias_end > bias ? row.bias_end : bias;
      allowed = row.allowed_end > allowed ? row.allowed_end : allowed;
    }
    rows_at = layout.Place(rows * static_cast<int64_t>(sizeof(DeviceRow)));
    history_ids_at = layout.Place(history * 4);
    history_counts_at = layout.Place(history * 4);
    bias_ids_at = layout.Place(bias * 4);
    bias_values_at = layout.Place(bias * 4);
    allowed_ids_at = layout.Place(allowed * 4);
  }

  int64_t rows = 0;
  int64_t history = 0;
  int64_t bias = 0;
  int64_t allowed = 0;
  Layout layout;
  int64_t rows_at = 0;
  int64_t history_ids_at = 0;
  int64_t history_counts_at = 0;
  int64_t bias_ids_at = 0;
  int64_t bias_values_at = 0;
  int64_t allowed_ids_at = 0;
};

void PackInputs(const SelectTokensArgs& args, const InputLayout& input, uint8_t* host) {
  const auto copy = [host](int64_t at, const void* from, int64_t count) {
    if (count > 0) {
      std::memcpy(host + at, from, static_cast<size_t>(count) * 4);
    }
  };
  for (int64_t r = 0; r < input.rows; ++r) {
    const SelectTokensRow& row = args.rows[r];
    const DeviceRow device_row = {row, UniformDraw(row.seed, row.position)};
    std::memcpy(
        host + input.rows_at + r * static_cast<int64_t>(sizeof(DeviceRow)),
        &device_row,
        sizeof(DeviceRow)
    );
  }
  copy(input.history_ids_at, args.history_ids, input.history);
  copy(input.history_counts_at, args.history_output_counts, input.history);
  copy(input.bias_ids_at, args.bias_ids, input.bias);
  copy(input.bias_values_at, args.bias_values, input.bias);
  copy(input.allowed_ids_at, args.allowed_ids, input.allowed);
}

}  // namespace

int64_t CudaOps::PackedSelectionBytes(const SelectTokensArgs& args) const {
  return InputLayout(args, args.logits.rows()).layout.bytes();
}

void CudaOps::PackSelection(const SelectTokensArgs& args, void* host) const {
  PackInputs(args, InputLayout(args, args.logits.rows()), static_cast<uint8_t*>(host));
}

const char* CudaOps::PackedInputs(const SelectTokensArgs& args, int64_t bytes) {
  if (args.packed != nullptr) {
    return static_cast<const char*>(args.packed);
  }
  auto* const memory = static_cast<char*>(Grow(select_inputs_, bytes));
  if (memory != nullptr) {
    select_host_.resize(static_cast<size_t>(bytes));
    PackSelection(args, select_host_.data());
    Upload(select_host_.data(), memory, bytes);
  }
  return memory;
}

void CudaOps::SelectTokens(const SelectTokensArgs& args, const SelectedTokens& out) {
  const int64_t rows = args.logits.rows();
  const int64_t vocabulary = args.logits.columns();
  CHECK(vocabulary > 0) << "logits are " << args.logits.ToString();
  CheckMatrix("logits", args.logits, rows, vocabulary);
  for (int64_t r = 0; r < rows; ++r) {
    CheckSelectTokensRow(args.rows[r], out.max_top_logprobs);
    CheckAllowedIds(args, args.rows[r], vocabulary);
  }
  for (int64_t r = 0; r < rows; ++r) {
    out.ids[r] = kLogitsNotFinite;  // what a device that fails leaves
  }
  if (!status_.ok() || rows == 0) {
    return;
  }
  const InputLayout input(args, rows);
  const bool wants_logprobs = out.logprobs != nullptr;
  const int64_t tops = wants_logprobs ? rows * out.max_top_logprobs : 0;
  // Results: ids, logprobs, top ids, top logprobs, all of four bytes, in one piece.
  const int64_t result_bytes = (2 * rows + 2 * tops) * 4;
  const char* inputs = PackedInputs(args, input.layout.bytes());
  auto* work = static_cast<float*>(Grow(select_logits_, args.logits.bytes()));
  auto* results = static_cast<int32_t*>(Grow(select_results_, result_bytes));
  if (!status_.ok()) {
    return;
  }
  select_host_.resize(static_cast<size_t>(result_bytes));

  SelectArgs select;
  select.raw = ConstFloats(args.logits);
  select.logits = Global<float>(work, args.logits.elements());
  select.rows = {reinterpret_cast<const DeviceRow*>(inputs + input.rows_at), rows};
  select.history_ids = {
      reinterpret_cast<const int32_t*>(inputs + input.history_ids_at), input.history};
  select.history_counts = {
      reinterpret_cast<const int32_t*>(inputs + input.history_counts_at), input.history};
  select.bias_ids = {reinterpret_cast<const int32_t*>(inputs + input.bias_ids_at), input.bias};
  select.bias_values = {reinterpret_cast<const float*>(inputs + input.bias_values_at), input.bias};
  select.allowed_ids = {
      reinterpret_cast<const int32_t*>(inputs + input.allowed_ids_at), input.allowed};
  select.ids = {results, rows};
  if (wants_logprobs) {
    select.logprobs = {reinterpret_cast<float*>(results + rows), rows};
    select.top_ids = {results + 2 * rows, tops};
    select.top_logprobs = {reinterpret_cast<float*>(results + 2 * rows + tops), tops};
  }
  select.vocabulary = vocabulary;
  select.max_top = out.max_top_logprobs;
  Launch(
      SelectTokensKernel,
      dim3{GridSize(rows), 1, 1},
      dim3{static_cast<unsigned>(ThreadsFor(vocabulary)), 1, 1},
      0,
      stream_->get(),
      select
  );
  if (!NoteLaunch("SelectTokens")) {
    return;
  }
  Download(results, select_host_.data(), result_bytes);
  if (status_.ok()) {
    UnpackResults(args, out, rows);
  }
}

// What the verb does not write for a row stays as it was.
void CudaOps::UnpackResults(const SelectTokensArgs& args, const SelectedTokens& out, int64_t rows)
    const {
  const auto* words = reinterpret_cast<const int32_t*>(select_host_.data());
  const auto* floats = reinterpret_cast<const float*>(select_host_.data());
  const int64_t tops = out.logprobs != nullptr ? rows * out.max_top_logprobs : 0;
  for (int64_t r = 0; r < rows; ++r) {
    out.ids[r] = words[r];
    if (out.ids[r] < 0 || out.logprobs == nullptr) {
      continue;
    }
    out.logprobs[r] = floats[rows + r];
    for (int64_t i = 0; i < args.rows[r].top_logprobs; ++i) {
      const int64_t place = r * out.max_top_logprobs + i;
      out.top_ids[place] = words[2 * rows + place];
      out.top_logprobs[place] = floats[2 * rows + tops + place];
    }
  }
}

}  // namespace switchyard
