#pragma once

#include <cstdint>

#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/scratch.h"
#include "kernels/ops.h"

namespace switchyard {

// Consecutive tokens of one sequence, at most kTokensPerTile.
struct AttentionTile {
  int64_t sequence = 0;
  int64_t token_begin = 0;
  int64_t token_end = 0;
};

// Adjacent key-value heads.
struct HeadRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Tokens of a tile share each key and value while it is in the first cache level.
inline constexpr int64_t kTokensPerTile = 16;

// Attention of one tile for some key-value heads and all their query groups. The scores of all
// positions are kept until they are weighed, so that every sum runs in the order of the positions,
// whatever the blocks and chunks these came in. Lives in one thread.
class AttentionTask {
 public:
  // Requires: the arguments outlive the task and have been checked; one head if there are several
  // tokens.
  AttentionTask(
      const PagedAttentionArgs& args, const AttentionTile& tile, HeadRange range, Scratch& scratch
  );

  void Run(TensorView out);

 private:
  // Positions that the token sees: [0, .).
  int64_t LengthAt(int64_t token) const;
  void FindRows(const TensorView& cache, int64_t position, int64_t count, const float** rows) const;
  void FindDistanceRows(int64_t distance, int64_t count, const float** rows) const;
  void KeepRows(int64_t dim, int64_t count, const float** rows) const;
  void LoadQueries();
  void Score(int64_t position);
  void Weigh();
  void AddValues(int64_t position);
  void StoreSums(TensorView out) const;
  int64_t RowsOfToken() const { return (range_.end - range_.begin) * groups_; }
  int64_t LocalRow(int64_t token) const { return (token - tile_.token_begin) * RowsOfToken(); }

  const PagedAttentionArgs& args_;
  AttentionTile tile_;
  HeadRange range_;
  int64_t groups_;
  int64_t heads_;
  int64_t length_;  // of the last token
  // Row ((token - token_begin) * heads of the range + head) * groups + group.
  FloatRows queries_;
  FloatRows scores_;
  FloatRows sums_;
  float* kept_ = nullptr;  // a tile of keys or values; null for a single token
};

}  // namespace switchyard
