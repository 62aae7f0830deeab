#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace switchyard {

// A folder of its own for one test, removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes a file of this folder, replacing one of the same name; returns its path.
  std::filesystem::path Write(const std::string& name, std::string_view content) const;
  // Copies every regular file of `folder` in here.
  void CopyFrom(const std::filesystem::path& folder) const;

 private:
  std::filesystem::path path_;
};

// The whole content of a file. CHECKs that it can be read.
std::string ReadWholeFile(const std::filesystem::path& path);

}  // namespace switchyard
