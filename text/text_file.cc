#include "text/text_file.h"

#include <fstream>
#include <iterator>
#include <system_error>

namespace switchyard {

StatusOr<std::string> ReadTokenizerFile(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) {
    return NotFound(path.string(), ": ", error.message());
  }
  if (bytes > static_cast<uintmax_t>(kMaxTokenizerFileBytes)) {
    return InvalidArgument(
        path.string(),
        " has ",
        bytes,
        " bytes; a tokenizer file may have ",
        kMaxTokenizerFileBytes,
        "; is this the right file?"
    );
  }
  // A file that shrinks while being read ends up as an error, not as half a tokenizer.
  std::ifstream stream(path, std::ios::binary);
  std::string contents(static_cast<size_t>(bytes), '\0');
  stream.read(contents.data(), static_cast<std::streamsize>(bytes));
  if (!stream) {
    return DataLoss(
        path.string(),
        ": read ",
        stream.gcount(),
        " of ",
        bytes,
        " bytes; check the file and its permissions"
    );
  }
  return contents;
}

}  // namespace switchyard
