#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "program/bench/bench_report.h"

namespace switchyard {

StatusOr<ReportFile> ReportFile::Open(const std::string& path) {
  ReportFile file(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return InvalidArgument("--output ", path, " is a folder; name a file");
  }
  if (!std::ofstream(file.PartialPath())) {
    return FailedPrecondition(
        "--output ", path, ": cannot write beside it: ", std::strerror(errno)
    );
  }
  std::filesystem::remove(file.PartialPath(), ignored);
  return file;
}

Status ReportFile::Write(const std::string& text) const {
  std::ofstream partial(PartialPath(), std::ios::trunc);
  partial << text;
  partial.close();
  std::error_code error;
  if (partial) {
    std::filesystem::rename(PartialPath(), path_, error);
  }
  if (!partial || error) {
    const std::string reason = error ? error.message() : std::strerror(errno);
    std::filesystem::remove(PartialPath(), error);
    return FailedPrecondition("--output ", path_, ": ", reason);
  }
  return OkStatus();
}

}  // namespace switchyard
