#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/row_kernels.h"

namespace switchyard {

double CpuOps::TokenSelector::LogSumExp(const float* logits, int64_t vocabulary) const {
  return LogSumExpRow(logits, vocabulary);
}

// A row needs no other, so each thread runs the reference on one row at a time.
void CpuOps::SelectTokens(const SelectTokensArgs& args, const SelectedTokens& out) {
  const int64_t rows = args.logits.rows();
  const int64_t vocabulary = args.logits.columns();
  const TensorView logits = args.logits.Reshaped({rows, vocabulary});
  pool_->ParallelFor(rows, 1, [&](int64_t begin, int64_t end, int worker) {
    SelectTokensArgs some_args = args;
    some_args.logits = logits.Slice(begin, end);
    some_args.rows = args.rows + begin;
    SelectedTokens some_out = out;
    some_out.ids += begin;
    if (out.logprobs != nullptr) {
      some_out.logprobs += begin;
    }
    if (out.top_ids != nullptr) {
      some_out.top_ids += begin * out.max_top_logprobs;
      some_out.top_logprobs += begin * out.max_top_logprobs;
    }
    selectors_[static_cast<size_t>(worker)].SelectTokens(some_args, some_out);
  });
}

}  // namespace switchyard
