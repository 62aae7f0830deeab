#include "tests/fuzz/input_files.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace switchyard {

std::vector<std::string_view> FilesOf(const uint8_t* data, size_t bytes) {
  constexpr size_t kMaxFiles = 8;
  std::string_view rest(reinterpret_cast<const char*>(data), bytes);
  std::vector<std::string_view> files;
  while (files.size() + 1 < kMaxFiles) {
    const size_t end = rest.find(kFileBoundary);
    if (end == std::string_view::npos) {
      break;
    }
    files.push_back(rest.substr(0, end));
    rest.remove_prefix(end + kFileBoundary.size());
  }
  files.push_back(rest);
  return files;
}

const TemporaryFolder& EmptyInputFolder() {
  static const TemporaryFolder kFolder;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder.path())) {
    std::filesystem::remove(entry.path());
  }
  return kFolder;
}

void WriteWeights(const TemporaryFolder& folder, const std::vector<std::string_view>& files) {
  if (files.size() == 1) {
    folder.Write("model.safetensors", files[0]);
    return;
  }
  folder.Write("model.safetensors.index.json", files[0]);
  for (size_t i = 1; i < files.size(); ++i) {
    folder.Write(std::string(1, static_cast<char>('a' + i - 1)), files[i]);
  }
}

void Expect(bool condition, const std::string& what) {
  if (!condition) {
    std::fprintf(stderr, "unexpected: %s\n", what.c_str());
    std::abort();
  }
}

}  // namespace switchyard
