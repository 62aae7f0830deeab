#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/tensor.h"
#include "kernels/weight.h"

namespace switchyard {

// One tensor of a safetensors file, still in the file's memory map, or of another TensorSource.
struct StoredTensor {
  std::string dtype;  // as the header spells it: "BF16", "I64", ...
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int64_t bytes = 0;
  TensorPlace place = TensorPlace::kHost;
};

// A read-only memory-mapped safetensors file. The header is checked completely before anything is
// used: length, JSON, dtypes, shape products without overflow, offsets in range, without overlap or
// gap, file length exact.
class SafetensorsFile {
 public:
  static constexpr int64_t kMaxHeaderBytes = int64_t{100} << 20;

  // DATA_LOSS naming the file and, where there is one, the tensor.
  static StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  SafetensorsFile() = default;
  Status Parse();
  // Every tensor begins where the one before it ends, and the last ends with the file.
  Status CheckContiguous(const char* data, int64_t data_bytes) const;

  std::filesystem::path path_;
  const char* map_ = nullptr;
  int64_t file_bytes_ = 0;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct TensorToWrite {
  std::string name;
  std::string dtype;  // "F32", "I32", "I64", "BF16"
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int64_t bytes = 0;
};

// Writes beside `path` and renames, so that a reader never sees half a file.
Status WriteSafetensors(
    const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors
);

}  // namespace switchyard
