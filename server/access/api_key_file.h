#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/access/api_key.h"

namespace switchyard {

// One entry of the file of --api-keys: who it is, and what they may do.
struct ApiKey {
  std::string name;  // 1 to 64 letters, digits and _.-: it stands in the log
  KeyHash hash = {};
  int64_t requests_per_minute = 0;  // calls of any kind; 0: any number
  int64_t tokens_per_minute = 0;    // prompt and completion; 0: any number
  std::optional<int32_t> priority;  // of requests that ask for none, and the most that one may ask
  bool admin = false;               // whether it opens the admin address, too

  bool operator==(const ApiKey&) const = default;
};

// {"keys": [{"name": ..., "sha256": ..., ...}]}. INVALID_ARGUMENT, beginning with `file_name`, for
// anything else: also for a field that it does not know, which would be a limit that is none.
StatusOr<std::vector<ApiKey>> ParseApiKeys(std::string_view text, const std::string& file_name);

}  // namespace switchyard
