#include "server/access/access_control.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "server/access/small_file.h"
#include "server/call/retry_info.h"

namespace switchyard {
namespace {

constexpr int64_t kMaxFileBytes = 4 << 20;
constexpr std::string_view kScheme = "Bearer ";

bool IsSame(const KeyHash& left, const KeyHash& right) {
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

Status OverLimit(const ApiKey& key, const char* what, int64_t per_minute, Clock::duration wait) {
  // Not a moment before the limit allows it.
  const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wait);
  return WithRetryDelay(
      ResourceExhausted(
          "API key \"",
          key.name,
          "\" has used its ",
          per_minute,
          " ",
          what,
          " a minute; try again in ",
          std::chrono::duration<double>(wait_ms).count(),
          " seconds"
      ),
      wait_ms
  );
}

bool HasScheme(std::string_view authorization) {
  // Schemes have no case (RFC 9110).
  return authorization.size() > kScheme.size() &&
         std::equal(kScheme.begin(), kScheme.end(), authorization.begin(), [](char want, char is) {
           return want == is || (is >= 'A' && is <= 'Z' && is - 'A' + 'a' == want) ||
                  (is >= 'a' && is <= 'z' && is - 'a' + 'A' == want);
         });
}

}  // namespace

KeyAccount::KeyAccount(const ApiKey& key, std::function<Clock::time_point()> now)
    : key_(key),
      now_(std::move(now)),
      requests_(key.requests_per_minute, now_()),
      tokens_(key.tokens_per_minute, now_()) {}

Status KeyAccount::TakeRequest() {
  const MutexLock lock(mutex_);
  const RateLimit::Verdict verdict = requests_.Take(1, now_());
  return verdict.is_taken
             ? OkStatus()
             : OverLimit(key_, "requests", key_.requests_per_minute, *verdict.retry_after);
}

Status KeyAccount::TakeTokens(int64_t tokens) {
  const MutexLock lock(mutex_);
  const RateLimit::Verdict verdict = tokens_.Take(tokens, now_());
  if (verdict.is_taken) {
    return OkStatus();
  }
  if (!verdict.retry_after) {
    return ResourceExhausted(
        "the request may take ",
        tokens,
        " tokens; API key \"",
        key_.name,
        "\" has ",
        key_.tokens_per_minute,
        " a minute; shorten the prompt, or lower stopping.max_tokens or the number of completions"
    );
  }
  return OverLimit(key_, "tokens", key_.tokens_per_minute, *verdict.retry_after);
}

void KeyAccount::ReturnTokens(int64_t tokens) {
  const MutexLock lock(mutex_);
  tokens_.Return(tokens, now_());
}

StatusOr<std::unique_ptr<AccessControl>> AccessControl::Open(
    const std::filesystem::path& file, std::function<Clock::time_point()> now
) {
  std::unique_ptr<AccessControl> access(new AccessControl(file, std::move(now)));
  RETURN_IF_ERROR(access->TryReload().status());
  return access;
}

std::shared_ptr<const AccessControl::Accounts> AccessControl::Current() const {
  const MutexLock lock(mutex_);
  return accounts_;
}

StatusOr<std::shared_ptr<KeyAccount>> AccessControl::Authenticate(std::string_view authorization
) const {
  if (!HasScheme(authorization)) {
    return Status(
        StatusCode::kUnauthenticated,
        "this server wants an API key: send the metadata (in HTTP the header) authorization: "
        "Bearer KEY"
    );
  }
  const std::string_view presented = authorization.substr(kScheme.size());
  const bool has_form = HasKeyForm(presented);
  const KeyHash hash = HashKey(has_form ? presented : "");
  std::shared_ptr<KeyAccount> found;
  for (const std::shared_ptr<KeyAccount>& account : *Current()) {
    if (IsSame(account->key().hash, hash) && has_form) {
      found = account;
    }
  }
  if (found == nullptr) {
    return Status(StatusCode::kUnauthenticated, "this server does not know that API key");
  }
  return found;
}

StatusOr<bool> AccessControl::TryReload() {
  const MutexLock lock(reload_mutex_);
  ASSIGN_OR_RETURN(std::string text, ReadSmallFile(file_, kMaxFileBytes));
  if (text == text_) {
    return false;
  }
  // Also when it is bad: it is not looked at twice.
  text_ = text;
  ASSIGN_OR_RETURN(const std::vector<ApiKey> keys, ParseApiKeys(text, file_.string()));
  std::map<KeyHash, std::shared_ptr<KeyAccount>> before;
  if (const std::shared_ptr<const Accounts> current = Current()) {
    for (const std::shared_ptr<KeyAccount>& account : *current) {
      before[account->key().hash] = account;
    }
  }
  auto accounts = std::make_shared<Accounts>();
  for (const ApiKey& key : keys) {
    const auto kept = before.find(key.hash);
    const bool is_same = kept != before.end() && kept->second->key() == key;
    accounts->push_back(is_same ? kept->second : std::make_shared<KeyAccount>(key, now_));
  }
  last_error_.clear();
  LogInfo("event=api_keys_loaded file={} keys={}", file_.string(), keys.size());
  const MutexLock swap(mutex_);
  accounts_ = std::move(accounts);
  return true;
}

void AccessControl::Reload() {
  const Status status = TryReload().status();
  if (status.ok()) {
    return;
  }
  const MutexLock lock(reload_mutex_);
  if (last_error_ != MessageOf(status)) {
    last_error_ = MessageOf(status);
    LogError("event=api_keys_not_reloaded reason=\"{}\"", last_error_);
  }
}

}  // namespace switchyard
