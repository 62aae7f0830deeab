#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace switchyard {

// The tokenizers that tests/text/data/make_conformance.py made.
std::vector<std::string> ConformanceFolders();
std::filesystem::path DataFolder(const std::string& name);
std::string ReadAll(const std::filesystem::path& path);

// Ends the test program when it cannot be loaded.
std::unique_ptr<Tokenizer> LoadFromData(
    const std::string& name, const TokenizerDefaults& defaults = {}
);

// A model folder that exists as long as this does.
class TemporaryModelFolder {
 public:
  explicit TemporaryModelFolder(const std::map<std::string, std::string>& contents_by_file_name);
  TemporaryModelFolder(const TemporaryModelFolder&) = delete;
  TemporaryModelFolder& operator=(const TemporaryModelFolder&) = delete;
  ~TemporaryModelFolder();

  const std::filesystem::path& Path() const { return path_; }

 private:
  std::filesystem::path path_;
};

StatusOr<std::unique_ptr<Tokenizer>> LoadFromFiles(
    const std::map<std::string, std::string>& contents_by_file_name,
    const TokenizerDefaults& defaults = {}
);

// "OK", or the message.
template <typename T>
std::string Complaint(const StatusOr<T>& result) {
  return result.ok() ? "OK" : MessageOf(result.status());
}

}  // namespace switchyard
