#include "engine/model/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json_text.h"

namespace switchyard {
namespace {

using Json = nlohmann::json;

std::optional<int64_t> BytesOfStored(const std::string& dtype) {
  static const std::map<std::string, int64_t> kBytes = {
      {"F64", 8},
      {"F32", 4},
      {"F16", 2},
      {"BF16", 2},
      {"I64", 8},
      {"U64", 8},
      {"I32", 4},
      {"U32", 4},
      {"I16", 2},
      {"U16", 2},
      {"I8", 1},
      {"U8", 1},
      {"BOOL", 1},
  };
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

struct Entry {
  StoredTensor tensor;
  int64_t begin = 0;  // in the data section
};

// A non-negative integer of a JSON number, or nothing.
std::optional<int64_t> NonNegative(const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{INT64_MAX}) {
    return std::nullopt;
  }
  return value.get<int64_t>();
}

StatusOr<Entry> ReadEntry(const Json& fields) {
  if (!fields.is_object() || !fields.contains("dtype") || !fields.contains("shape") ||
      !fields.contains("data_offsets")) {
    return DataLoss("its header entry lacks dtype, shape or data_offsets");
  }
  const Json& dtype = fields["dtype"];
  const Json& shape = fields["shape"];
  const Json& offsets = fields["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2) {
    return DataLoss("its header entry has fields of the wrong type");
  }

  Entry entry;
  entry.tensor.dtype = dtype.get<std::string>();
  const std::optional<int64_t> element_bytes = BytesOfStored(entry.tensor.dtype);
  if (!element_bytes) {
    return DataLoss("dtype ", entry.tensor.dtype, " is not supported");
  }
  int64_t bytes = *element_bytes;
  for (const Json& size : shape) {
    const std::optional<int64_t> dim = NonNegative(size);
    if (!dim || __builtin_mul_overflow(bytes, *dim, &bytes)) {
      return DataLoss("shape ", shape.dump(), " is not a shape or overflows");
    }
    entry.tensor.shape.push_back(*dim);
  }
  const std::optional<int64_t> begin = NonNegative(offsets[0]);
  const std::optional<int64_t> end = NonNegative(offsets[1]);
  if (!begin || !end || *begin > *end || *end - *begin != bytes) {
    return DataLoss(
        "data_offsets ",
        offsets.dump(),
        " do not hold ",
        bytes,
        " bytes of ",
        entry.tensor.dtype,
        " ",
        shape.dump()
    );
  }
  entry.begin = *begin;
  entry.tensor.bytes = bytes;
  return entry;
}

}  // namespace

StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::filesystem::path& path
) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->path_ = path;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return NotFound(path.string(), ": cannot be opened: ", std::strerror(errno));
  }
  struct stat status = {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return DataLoss(path.string(), ": is not a regular file");
  }
  file->file_bytes_ = status.st_size;
  if (file->file_bytes_ < 8) {
    close(descriptor);
    return DataLoss(
        path.string(), ": has ", file->file_bytes_, " bytes, too short for a safetensors file"
    );
  }
  void* map =
      mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, descriptor, 0);
  const int map_error = errno;
  close(descriptor);
  if (map == MAP_FAILED) {
    return ResourceExhausted(path.string(), ": cannot be mapped: ", std::strerror(map_error));
  }
  file->map_ = static_cast<const char*>(map);
  if (const Status parsed = file->Parse(); !parsed.ok()) {
    return WithContext(parsed, path.string());
  }
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  if (map_ != nullptr) {
    munmap(const_cast<char*>(map_), static_cast<size_t>(file_bytes_));
  }
}

Status SafetensorsFile::Parse() {
  uint64_t header_bytes = 0;
  std::memcpy(
      &header_bytes, map_, sizeof(header_bytes)
  );  // little-endian, as every machine we run on
  if (header_bytes > static_cast<uint64_t>(kMaxHeaderBytes) ||
      header_bytes > static_cast<uint64_t>(file_bytes_ - 8)) {
    return DataLoss(
        "its header claims ",
        header_bytes,
        " bytes; the file has ",
        file_bytes_,
        " and the limit is ",
        kMaxHeaderBytes
    );
  }
  const char* header_begin = map_ + 8;
  const char* data = header_begin + header_bytes;
  const int64_t data_bytes = file_bytes_ - 8 - static_cast<int64_t>(header_bytes);
  const StatusOr<Json> header =
      ParseJson(std::string_view(header_begin, static_cast<size_t>(header_bytes)), "its header");
  if (!header.ok()) {
    return DataLoss(MessageOf(header.status()));
  }
  if (!header->is_object()) {
    return DataLoss("its header is not a JSON object");
  }

  for (const auto& [name, fields] : header->items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : fields.items()) {
        metadata_[key] = value.is_string() ? value.get<std::string>() : value.dump();
      }
      continue;
    }
    StatusOr<Entry> entry = ReadEntry(fields);
    if (!entry.ok()) {
      return WithContext(entry.status(), Concat("tensor ", name));
    }
    if (entry->tensor.bytes > data_bytes || entry->begin > data_bytes - entry->tensor.bytes) {
      return DataLoss(
          "tensor ",
          name,
          ": ends at byte ",
          entry->begin + entry->tensor.bytes,
          " of a data section of ",
          data_bytes,
          "; the file is truncated"
      );
    }
    entry->tensor.data = data + entry->begin;
    tensors_[name] = entry->tensor;
  }

  return CheckContiguous(data, data_bytes);
}

Status SafetensorsFile::CheckContiguous(const char* data, int64_t data_bytes) const {
  struct Span {
    int64_t begin;
    int64_t bytes;
    const std::string* name;
  };
  std::vector<Span> spans;
  spans.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) {
    spans.push_back({static_cast<const char*>(tensor.data) - data, tensor.bytes, &name});
  }
  // Tensors of zero bytes may share an offset with the next; those come first.
  std::sort(spans.begin(), spans.end(), [](const Span& left, const Span& right) {
    return std::pair(left.begin, left.bytes) < std::pair(right.begin, right.bytes);
  });
  int64_t expected = 0;
  for (const Span& span : spans) {
    if (span.begin != expected) {
      return DataLoss(
          "tensor ",
          *span.name,
          ": begins at byte ",
          span.begin,
          " where ",
          expected,
          " was expected: tensors ",
          span.begin < expected ? "overlap" : "leave a gap"
      );
    }
    expected = span.begin + span.bytes;
  }
  if (expected != data_bytes) {
    return DataLoss("has ", data_bytes - expected, " bytes after its last tensor");
  }
  return OkStatus();
}

Status WriteSafetensors(
    const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors
) {
  Json header = Json::object();
  int64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype},
        {"shape", tensor.shape},
        {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begins at a multiple of 8

  const std::filesystem::path beside = path.string() + ".partial";
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  const uint64_t header_bytes = text.size();
  out.write(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const TensorToWrite& tensor : tensors) {
    out.write(static_cast<const char*>(tensor.data), tensor.bytes);
  }
  out.close();
  std::error_code error;
  if (!out) {
    std::filesystem::remove(beside, error);
    return Unavailable(
        path.string(), ": cannot be written; is the folder there, writable and not full?"
    );
  }
  std::filesystem::rename(beside, path, error);
  if (error) {
    return Unavailable(path.string(), ": cannot be written: ", error.message());
  }
  return OkStatus();
}

}  // namespace switchyard
