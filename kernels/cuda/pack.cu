#include "kernels/cuda/pack.h"

#include "kernels/cuda/view.h"

namespace switchyard {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads of a block, beside each other in y
constexpr int64_t kMaxGridY = 65535;

}  // namespace

// Through shared memory, so that both the source and the target are read and written in rows.
template <typename Element>
__global__ void PackKernel(PackArgs args, Global<const Element> source, Global<Element> target) {
  SHARED_ARRAY(Element, tile, kTile * (kTile + 1));
  const int column = static_cast<int>(threadIdx.x);
  const bool out_first = args.layout == WeightLayout::kOutIn;
  const int64_t source_rows = out_first ? args.out_features : args.in_features;
  const int64_t source_columns = out_first ? args.in_features : args.out_features;
  const int64_t in_begin = int64_t{blockIdx.x} * kTile;
  const int64_t tiles_of_out = (args.out_features + kTile - 1) / kTile;
  for (int64_t out_tile = blockIdx.y; out_tile < tiles_of_out; out_tile += gridDim.y) {
    const int64_t out_begin = out_tile * kTile;
    const int64_t row_begin = out_first ? out_begin : in_begin;
    const int64_t column_begin = out_first ? in_begin : out_begin;
    for (int row = static_cast<int>(threadIdx.y); row < kTile; row += kTileRows) {
      const int64_t r = row_begin + row;
      const int64_t c = column_begin + column;
      const bool exists = r < source_rows && c < source_columns;
      tile[row * (kTile + 1) + column] = exists ? source[r * source_columns + c] : Element{0};
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.y); row < kTile; row += kTileRows) {
      const int64_t out = out_begin + row;
      const int64_t in = in_begin + column;
      if (out < args.out_features && in < args.padded_in) {
        const Element element =
            out_first ? tile[row * (kTile + 1) + column] : tile[column * (kTile + 1) + row];
        target[out * args.padded_in + in] = element;
      }
    }
    __syncthreads();
  }
}

namespace {

template <typename Element>
void LaunchFor(const PackArgs& args, cudaStream_t stream) {
  const int64_t out_tiles = DivideUp(args.out_features, kTile);
  Launch(
      PackKernel<Element>,
      dim3{
          GridSize(DivideUp(args.padded_in, kTile)),
          GridSize(out_tiles < kMaxGridY ? out_tiles : kMaxGridY),
          1},
      dim3{kTile, kTileRows, 1},
      0,
      stream,
      args,
      Global<const Element>(
          static_cast<const Element*>(args.source), args.in_features * args.out_features
      ),
      Global<Element>(static_cast<Element*>(args.target), args.padded_in * args.out_features)
  );
}

}  // namespace

void LaunchPack(const PackArgs& args, cudaStream_t stream) {
  if (args.element_bytes == 2) {
    LaunchFor<uint16_t>(args, stream);
  } else {
    LaunchFor<uint32_t>(args, stream);
  }
}

}  // namespace switchyard
