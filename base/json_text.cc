#include "base/json_text.h"

#include <exception>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace switchyard {
namespace {

// The library quotes the token that it stumbled over, which may be the whole file.
constexpr size_t kMaxComplaintBytes = 200;

}  // namespace

StatusOr<nlohmann::json> ParseJson(std::string_view text, const std::string& file_name) {
  // The callback drops what it refuses, so a deep file costs no more memory than a shallow one. The
  // library's parser keeps its own stack and does not recurse.
  bool too_deep = false;
  using Event = nlohmann::json::parse_event_t;
  const auto keep = [&too_deep](int depth, Event event, const nlohmann::json&) {
    const bool is_start = event == Event::object_start || event == Event::array_start;
    too_deep = too_deep || (is_start && depth >= kMaxJsonDepth);  // the outermost starts at 0
    return !too_deep;
  };
  try {
    nlohmann::json document = nlohmann::json::parse(text.begin(), text.end(), keep);
    if (too_deep) {
      return InvalidArgument(file_name, " nests deeper than ", kMaxJsonDepth, " levels");
    }
    return document;
  } catch (const std::exception& error) {
    return InvalidArgument(
        file_name,
        " is not valid JSON: ",
        std::string_view(error.what()).substr(0, kMaxComplaintBytes)
    );
  }
}

StatusOr<nlohmann::json> ReadJsonFile(const std::filesystem::path& path, int64_t max_bytes) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) {
    return NotFound(path.string(), ": cannot be read: ", error.message());
  }
  if (bytes > static_cast<std::uintmax_t>(max_bytes)) {
    return DataLoss(path.string(), ": has ", bytes, " bytes; such a file has at most ", max_bytes);
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  StatusOr<nlohmann::json> document = ParseJson(text, path.string());
  return document.ok() ? std::move(document) : DataLoss(MessageOf(document.status()));
}

}  // namespace switchyard
