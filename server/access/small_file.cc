#include "server/access/small_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace switchyard {

StatusOr<std::string> ReadSmallFile(const std::filesystem::path& path, int64_t max_bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  // A pipe or a device would hold up who reads it, or never end.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return InvalidArgument(path.string(), ": is no regular file");
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return NotFound(path.string(), ": cannot be read: ", std::strerror(errno));
  }
  std::string text;
  std::array<char, 4096> piece = {};
  while (in && text.size() <= static_cast<size_t>(max_bytes)) {
    in.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<size_t>(in.gcount()));
  }
  if (text.size() > static_cast<size_t>(max_bytes)) {
    return InvalidArgument(path.string(), ": has more than ", max_bytes, " bytes");
  }
  return text;
}

}  // namespace switchyard
