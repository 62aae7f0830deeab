#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace switchyard::cuda_host {

// The shared memory of one block, with who wrote and who read each element last. Elements are
// tracked in pieces of two bytes, by the first piece.
class SharedMemory {
 public:
  // Forgets everything: a new block.
  void Reset(int64_t dynamic_bytes);

  // The array that `declaration` stands for; the same one for every thread of a block.
  int64_t StaticOffset(const void* declaration, int64_t bytes);
  int64_t DynamicOffset() const { return kDynamicBegin; }
  int64_t dynamic_bytes() const { return dynamic_bytes_; }
  int64_t static_bytes() const { return static_bytes_; }

  unsigned char* Bytes(int64_t offset) { return bytes_.data() + offset; }

  enum class Access : uint8_t { kRead, kWrite, kAtomic };
  // Reports what is wrong with it.
  void Check(int64_t offset, Access access);

  static constexpr int64_t kMaxStaticBytes = int64_t{48} * 1024;
  static constexpr int64_t kMaxDynamicBytes = int64_t{227} * 1024;  // of sm_90; sm_80 has 163 KiB

 private:
  static constexpr int64_t kDynamicBegin = kMaxStaticBytes;

  struct Stamp {
    int thread = -1;
    int block_epoch = -1;
    int warp_epoch = -1;
  };
  struct Piece {
    uint64_t block = 0;  // what follows is of this block
    Stamp write;
    Stamp read;
    bool atomic = false;      // the last write was one
    bool many_read = false;   // by several threads of read.thread's warp
    bool warps_read = false;  // by several warps
  };
  struct Declaration {
    const void* declaration = nullptr;
    int64_t offset = 0;
  };

  bool Ordered(const Stamp& before, const Stamp& now) const;
  void CheckWrite(const Piece& piece, const Stamp& now, bool atomic) const;
  void NoteRead(Piece& piece, const Stamp& now) const;

  uint64_t block_ = 0;
  int64_t static_bytes_ = 0;
  int64_t dynamic_bytes_ = 0;
  std::vector<Declaration> declarations_;
  std::vector<unsigned char> bytes_;
  std::vector<Piece> pieces_;
};

}  // namespace switchyard::cuda_host
