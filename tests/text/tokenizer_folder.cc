#include "tests/text/tokenizer_folder.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

#include "base/check.h"

namespace switchyard {

std::vector<std::string> ConformanceFolders() {
  return {
      "byte_level",
      "byte_level_prefix",
      "byte_level_split",
      "llama_metaspace",
      "llama_metaspace_first",
      "llama_normalizer",
      "sentencepiece_bpe",
      "sentencepiece_nmt_nfkc",
      "sentencepiece_unigram"};
}

std::filesystem::path DataFolder(const std::string& name) {
  return std::filesystem::path(SWITCHYARD_TEST_DATA_DIR) / name;
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  CHECK(stream.good()) << path.string();
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::unique_ptr<Tokenizer> LoadFromData(
    const std::string& name, const TokenizerDefaults& defaults
) {
  auto tokenizer = LoadTokenizer(DataFolder(name), defaults);
  CHECK(tokenizer.ok()) << Complaint(tokenizer);
  return *std::move(tokenizer);
}

TemporaryModelFolder::TemporaryModelFolder(
    const std::map<std::string, std::string>& contents_by_file_name
) {
  static std::atomic<int> made{0};
  path_ = std::filesystem::temp_directory_path() /
          Concat("switchyard_text_test_", getpid(), "_", made.fetch_add(1));
  std::filesystem::create_directories(path_);
  for (const auto& [file_name, contents] : contents_by_file_name) {
    std::ofstream(path_ / file_name, std::ios::binary) << contents;
  }
}

TemporaryModelFolder::~TemporaryModelFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

StatusOr<std::unique_ptr<Tokenizer>> LoadFromFiles(
    const std::map<std::string, std::string>& contents_by_file_name,
    const TokenizerDefaults& defaults
) {
  const TemporaryModelFolder folder(contents_by_file_name);
  return LoadTokenizer(folder.Path(), defaults);
}

}  // namespace switchyard
