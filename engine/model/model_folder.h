#pragma once

#include <filesystem>

#include "base/status.h"

namespace switchyard {

// A model folder is closed: no file of it may lead out, through a symbolic link or otherwise, to
// something that whoever wrote the folder chose. DATA_LOSS naming the file and where it leads.
// A file that does not exist passes; opening it will say so.
Status CheckInsideFolder(const std::filesystem::path& folder, const std::filesystem::path& file);

}  // namespace switchyard
