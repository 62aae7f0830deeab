#include "program/token_file.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "engine/model/safetensors.h"

namespace switchyard {
namespace {

template <typename Stored>
StatusOr<std::vector<int32_t>> Narrowed(const StoredTensor& tensor) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < tensor.shape[0]; ++i) {
    Stored value = 0;
    std::memcpy(&value, static_cast<const char*>(tensor.data) + i * sizeof(Stored), sizeof(Stored));
    if (value < 0 || value > INT32_MAX) {
      return InvalidArgument("token ", i, " is ", value, "; ids are 0 to 2147483647");
    }
    tokens.push_back(static_cast<int32_t>(value));
  }
  return tokens;
}

}  // namespace

StatusOr<std::vector<int32_t>> ReadTokenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsFile> file, SafetensorsFile::Open(path));
  const auto found = file->tensors().find("tokens");
  if (found == file->tensors().end()) {
    return InvalidArgument(path, ": no tensor named `tokens`; it must be I64 [T]");
  }
  const StoredTensor& tensor = found->second;
  if (tensor.shape.size() == 1 && tensor.dtype == "I64") {
    return Narrowed<int64_t>(tensor);
  }
  if (tensor.shape.size() == 1 && tensor.dtype == "I32") {
    return Narrowed<int32_t>(tensor);
  }
  return InvalidArgument(
      path,
      ": `tokens` is ",
      tensor.dtype,
      " with ",
      tensor.shape.size(),
      " dimensions; it must be I64 [T]"
  );
}

StatusOr<std::vector<int32_t>> ReadTokenList(const std::string& ids_or_path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(ids_or_path, error)) {
    return ReadTokenFile(ids_or_path);
  }
  std::vector<int32_t> tokens;
  const char* next = ids_or_path.data();
  const char* const end = next + ids_or_path.size();
  while (next != end) {
    int32_t token = 0;
    const auto [after, fault] = std::from_chars(next, end, token);
    if (fault != std::errc() || (after != end && *after != ',')) {
      return InvalidArgument(
          "prompt tokens \"",
          ids_or_path,
          "\": neither a file nor token ids with commas between them, such as 12,7,9"
      );
    }
    tokens.push_back(token);
    next = after == end ? end : after + 1;
  }
  return tokens;
}

}  // namespace switchyard
