#include "tests/support/temporary_folder.h"

#include <stdlib.h>

#include <fstream>
#include <iterator>

#include "base/check.h"

namespace switchyard {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "switchyard_test_XXXXXX").string();
  CHECK(mkdtemp(name.data()) != nullptr) << name;
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::Write(const std::string& name, std::string_view content)
    const {
  const std::filesystem::path path = path_ / name;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  CHECK(out.good()) << path;
  return path;
}

void TemporaryFolder::CopyFrom(const std::filesystem::path& folder) const {
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      std::filesystem::copy_file(
          entry.path(),
          path_ / entry.path().filename(),
          std::filesystem::copy_options::overwrite_existing
      );
    }
  }
}

std::string ReadWholeFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  CHECK(in.good()) << path;
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

}  // namespace switchyard
