#include "engine/model/model_folder.h"

#include <algorithm>

namespace switchyard {

Status CheckInsideFolder(const std::filesystem::path& folder, const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(folder, error);
  if (error) {
    return NotFound(
        folder.string(),
        ": is not a folder that can be read: ",
        error.message(),
        "; name one with config.json and safetensors"
    );
  }
  const std::filesystem::path target = std::filesystem::weakly_canonical(file, error);
  if (error) {
    return DataLoss(file.string(), ": cannot be followed: ", error.message());
  }
  const auto [root_end, unused] =
      std::mismatch(root.begin(), root.end(), target.begin(), target.end());
  if (root_end != root.end()) {
    return DataLoss(
        file.string(),
        ": leads out of the model folder, to ",
        target.string(),
        "; put the file itself into the folder"
    );
  }
  return OkStatus();
}

}  // namespace switchyard
