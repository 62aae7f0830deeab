#include "tests/cuda_host/shared_memory.h"

#include "base/status.h"
#include "tests/cuda_host/block_runner.h"
#include "tests/cuda_host/report.h"

namespace switchyard::cuda_host {
namespace {

constexpr int64_t kPieceBytes = 2;
constexpr int64_t kArrayAlignment = 16;

}  // namespace

void SharedMemory::Reset(int64_t dynamic_bytes) {
  if (bytes_.empty()) {
    bytes_.resize(kDynamicBegin + kMaxDynamicBytes);
    pieces_.resize(bytes_.size() / kPieceBytes);
  }
  ++block_;
  static_bytes_ = 0;
  dynamic_bytes_ = dynamic_bytes;
  declarations_.clear();
}

int64_t SharedMemory::StaticOffset(const void* declaration, int64_t bytes) {
  for (const Declaration& known : declarations_) {
    if (known.declaration == declaration) {
      return known.offset;
    }
  }
  const int64_t offset = static_bytes_;
  static_bytes_ += (bytes + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  if (static_bytes_ > kMaxStaticBytes) {
    ReportFromKernel(
        Fault::kLaunchLimit,
        Concat(static_bytes_, " bytes of static shared memory; a block has ", kMaxStaticBytes)
    );
  }
  declarations_.push_back({.declaration = declaration, .offset = offset});
  return offset;
}

// By a barrier of the block, or within a warp by one of the warp.
bool SharedMemory::Ordered(const Stamp& before, const Stamp& now) const {
  if (before.thread == now.thread || before.block_epoch != now.block_epoch) {
    return true;
  }
  const bool same_warp = before.thread / kWarpThreads == now.thread / kWarpThreads;
  return same_warp && before.warp_epoch != now.warp_epoch;
}

void SharedMemory::CheckWrite(const Piece& piece, const Stamp& now, bool atomic) const {
  if (piece.block != block_) {
    return;
  }
  if (piece.write.thread >= 0 && !(atomic && piece.atomic) && !Ordered(piece.write, now)) {
    ReportFromKernel(
        Fault::kRace,
        Concat("shared memory written by threads ", piece.write.thread, " and ", now.thread)
    );
  }
  const Stamp& read = piece.read;
  const bool same_warp =
      !piece.warps_read && read.thread / kWarpThreads == now.thread / kWarpThreads;
  const bool by_others = read.thread != now.thread || piece.many_read || piece.warps_read;
  if (read.thread >= 0 && read.block_epoch == now.block_epoch && by_others &&
      !(same_warp && read.warp_epoch != now.warp_epoch)) {
    ReportFromKernel(
        Fault::kRace,
        Concat("shared memory read by thread ", read.thread, " is overwritten by ", now.thread)
    );
  }
}

void SharedMemory::NoteRead(Piece& piece, const Stamp& now) const {
  const bool same_epoch = piece.read.thread >= 0 && piece.read.block_epoch == now.block_epoch;
  if (!same_epoch) {
    piece.many_read = piece.warps_read = false;
  } else if (piece.read.thread != now.thread) {
    piece.many_read = true;
    piece.warps_read |= piece.read.thread / kWarpThreads != now.thread / kWarpThreads;
  }
  piece.read = now;
}

void SharedMemory::Check(int64_t offset, Access access) {
  const ThreadState& thread = *BlockRunner::Current();
  const BlockRunner& runner = *thread.runner;
  const Stamp now = {
      .thread = thread.linear,
      .block_epoch = runner.block_epoch(),
      .warp_epoch = runner.warp_epoch(thread.linear)};
  Piece& piece = pieces_[static_cast<size_t>(offset / kPieceBytes)];
  const bool known = piece.block == block_;
  if (access != Access::kWrite) {
    if (!known || piece.write.thread < 0) {
      ReportFromKernel(
          Fault::kUninitialisedShared, Concat("shared memory at byte ", offset, " was not written")
      );
    }
  }
  if (access == Access::kRead) {
    if (!Ordered(piece.write, now)) {
      ReportFromKernel(
          Fault::kRace,
          Concat(
              "shared memory written by thread ",
              piece.write.thread,
              " is read by ",
              now.thread,
              " without a barrier"
          )
      );
    }
    NoteRead(piece, now);
    return;
  }
  CheckWrite(piece, now, access == Access::kAtomic);
  if (!known) {
    piece = Piece();
    piece.block = block_;
  }
  piece.write = now;
  piece.atomic = access == Access::kAtomic;
}

}  // namespace switchyard::cuda_host
