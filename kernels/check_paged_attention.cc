#include "kernels/check_paged_attention.h"

#include "base/check.h"
#include "kernels/check_shape.h"

namespace switchyard {
namespace {

void CheckOffsets(const PagedAttentionArgs& args) {
  const int64_t sequences = args.block_tables.dim(0);
  const int32_t* offsets = args.query_offsets.i32();
  CHECK(offsets[0] == 0 && offsets[sequences] == args.query.dim(0))
      << "query offsets run from " << offsets[0] << " to " << offsets[sequences] << "; query "
      << args.query.ToString();
}

void CheckSequence(const PagedAttentionArgs& args, int64_t sequence) {
  const int64_t begin = args.query_offsets.i32()[sequence];
  const int64_t end = args.query_offsets.i32()[sequence + 1];
  const int64_t kv_length = args.kv_lengths.i32()[sequence];
  const int64_t room = args.block_tables.dim(1) * args.key_cache.dim(1);
  CHECK(begin <= end && end - begin <= kv_length && kv_length <= room)
      << "sequence " << sequence << " has tokens " << begin << " to " << end << " and kv length "
      << kv_length << "; its blocks hold " << room;
  CHECK(args.weighting != Weighting::kTransformerXl || kv_length <= args.distance_keys.dim(0))
      << "kv length " << kv_length << "; distance keys " << args.distance_keys.ToString();
}

}  // namespace

void CheckPagedAttentionShapes(const PagedAttentionArgs& args, TensorView out) {
  const TensorView& query = args.query;
  const TensorView& keys = args.key_cache;
  const TensorView& values = args.value_cache;
  CHECK(query.rank() == 4 && keys.rank() == 4 && values.rank() == 4)
      << "query " << query.ToString() << " keys " << keys.ToString() << " values "
      << values.ToString();
  CHECK(args.block_tables.rank() == 2) << "block tables " << args.block_tables.ToString();
  const int64_t heads = query.dim(2);
  const int64_t sequences = args.block_tables.dim(0);
  CheckShape("key_cache", keys, DType::kF32, {keys.dim(0), keys.dim(1), heads, query.dim(3)});
  CheckShape("value_cache", values, DType::kF32, {keys.dim(0), keys.dim(1), heads, values.dim(3)});
  CheckElements("query_offsets", args.query_offsets, DType::kI32, sequences + 1);
  CheckElements("kv_lengths", args.kv_lengths, DType::kI32, sequences);
  CheckElements("out", out, DType::kF32, query.dim(0) * query.dim(1) * heads * values.dim(3));
  CHECK(out.elements() == 0 || out.data() != query.data()) << "out aliases query";
  if (args.weighting == Weighting::kTransformerXl) {
    const TensorView& distance_keys = args.distance_keys;
    CHECK(distance_keys.rank() == 3) << "distance keys are " << distance_keys.ToString();
    CheckShape(
        "distance_keys", distance_keys, DType::kF32, {distance_keys.dim(0), heads, query.dim(3)}
    );
  }
}

void CheckPagedAttention(const PagedAttentionArgs& args, TensorView out) {
  CheckPagedAttentionShapes(args, out);
  CheckOffsets(args);
  for (int64_t sequence = 0; sequence < args.block_tables.dim(0); ++sequence) {
    CheckSequence(args, sequence);
  }
}

}  // namespace switchyard
