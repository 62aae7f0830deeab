#include "engine/model/weight_files.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "engine/model/model_folder.h"

namespace switchyard {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxIndexBytes = int64_t{100} << 20;  // as of a safetensors header

// The index: tensor name -> file name, of at least one tensor.
StatusOr<std::map<std::string, std::string>> ReadIndex(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Json index, ReadJsonFile(path, kMaxIndexBytes));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return DataLoss(path.string(), ": is not an index: it has no object \"weight_map\"");
  }
  const Json& weight_map = index["weight_map"];
  if (weight_map.empty()) {
    return DataLoss(path.string(), ": weight_map names no tensor");
  }
  std::map<std::string, std::string> file_of;
  for (const auto& [tensor, file] : weight_map.items()) {
    if (!file.is_string()) {
      return DataLoss(path.string(), ": weight_map[\"", tensor, "\"] is not a file name");
    }
    const std::filesystem::path name = file.get<std::string>();
    if (name.empty() || name != name.filename() || name == "..") {
      return DataLoss(
          path.string(),
          ": weight_map[\"",
          tensor,
          "\"] is ",
          name.string(),
          ", not a plain file name"
      );
    }
    file_of[tensor] = name.string();
  }
  return file_of;
}

}  // namespace

StatusOr<std::unique_ptr<WeightFiles>> WeightFiles::Open(const std::filesystem::path& folder) {
  auto weights = std::make_unique<WeightFiles>();
  const std::filesystem::path single = folder / "model.safetensors";
  const std::filesystem::path index_path = folder / "model.safetensors.index.json";

  std::map<std::string, std::string> index;
  std::set<std::string> names;
  if (std::filesystem::exists(index_path)) {
    RETURN_IF_ERROR(CheckInsideFolder(folder, index_path));
    ASSIGN_OR_RETURN(index, ReadIndex(index_path));
    for (const auto& [tensor, file] : index) {
      names.insert(file);
    }
  } else if (std::filesystem::exists(single)) {
    names.insert(single.filename().string());
  } else {
    return NotFound(
        folder.string(),
        ": has neither model.safetensors nor model.safetensors.index.json; export the checkpoint "
        "first"
    );
  }

  for (const std::string& name : names) {
    RETURN_IF_ERROR(CheckInsideFolder(folder, folder / name));
    StatusOr<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::Open(folder / name);
    if (!file.ok()) {
      return index.empty()
                 ? file.status()
                 : WithContext(file.status(), Concat("shard named by ", index_path.string()));
    }
    for (const auto& [tensor, stored] : (*file)->tensors()) {
      if (!index.empty() && (!index.contains(tensor) || index[tensor] != name)) {
        return DataLoss(
            (folder / name).string(),
            ": tensor ",
            tensor,
            ": the index does not say that it is here"
        );
      }
      weights->file_of_[tensor] = weights->files_.size();
    }
    weights->files_.push_back(*std::move(file));
  }
  for (const auto& [tensor, file] : index) {
    if (!weights->file_of_.contains(tensor)) {
      return DataLoss(
          (folder / file).string(),
          ": tensor ",
          tensor,
          ": the index says it is here, but it is not"
      );
    }
  }
  return weights;
}

const StoredTensor* WeightFiles::Find(const std::string& name) const {
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? nullptr : &files_[found->second]->tensors().at(name);
}

std::string WeightFiles::FileOf(const std::string& name) const {
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? files_.front()->path().string()
                                 : files_[found->second]->path().string();
}

std::vector<std::string> WeightFiles::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : file_of_) {
    names.push_back(name);
  }
  return names;
}

int64_t WeightFiles::bytes() const {
  int64_t total = 0;
  for (const auto& file : files_) {
    for (const auto& [name, tensor] : file->tensors()) {
      total += tensor.bytes;
    }
  }
  return total;
}

}  // namespace switchyard
