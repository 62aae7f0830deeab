#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/access/api_key_file.h"
#include "server/access/rate_limit.h"

namespace switchyard {

// What one API key has used of its limits. Thread-safe.
class KeyAccount {
 public:
  KeyAccount(const ApiKey& key, std::function<Clock::time_point()> now);

  const ApiKey& key() const { return key_; }

  // RESOURCE_EXHAUSTED with a RetryInfo when the limit is used up; without one when the key may
  // never take so many tokens at once.
  Status TakeRequest();
  Status TakeTokens(int64_t tokens);
  void ReturnTokens(int64_t tokens);

 private:
  const ApiKey key_;
  const std::function<Clock::time_point()> now_;
  Mutex mutex_;
  RateLimit requests_ ABSL_GUARDED_BY(mutex_);
  RateLimit tokens_ ABSL_GUARDED_BY(mutex_);
};

// Which API keys open the server: those of a file that may change while it runs. Thread-safe.
class AccessControl {
 public:
  // INVALID_ARGUMENT or NOT_FOUND, naming the file, when it cannot be used.
  static StatusOr<std::unique_ptr<AccessControl>> Open(
      const std::filesystem::path& file, std::function<Clock::time_point()> now = Clock::now
  );

  // Whose call it is that came with this `authorization`. UNAUTHENTICATED when it is not "Bearer"
  // and a key of the file. Looks at every key, each in constant time.
  StatusOr<std::shared_ptr<KeyAccount>> Authenticate(std::string_view authorization) const;

  // Looks whether the file changed. A bad file is logged, once, and changes nothing. A key whose
  // limits are as before keeps what it has used.
  void Reload();

 private:
  AccessControl(std::filesystem::path file, std::function<Clock::time_point()> now)
      : file_(std::move(file)), now_(std::move(now)) {}

  // Whether anything was new.
  StatusOr<bool> TryReload();
  using Accounts = std::vector<std::shared_ptr<KeyAccount>>;
  std::shared_ptr<const Accounts> Current() const;

  const std::filesystem::path file_;
  const std::function<Clock::time_point()> now_;
  Mutex reload_mutex_;                                     // held over a whole reload
  std::string text_ ABSL_GUARDED_BY(reload_mutex_);        // that was last read
  std::string last_error_ ABSL_GUARDED_BY(reload_mutex_);  // that was logged
  mutable Mutex mutex_;
  std::shared_ptr<const Accounts> accounts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
