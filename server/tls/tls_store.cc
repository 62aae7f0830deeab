#include "server/tls/tls_store.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace switchyard {

StatusOr<std::unique_ptr<TlsStore>> TlsStore::Open(const TlsFiles& files) {
  std::unique_ptr<TlsStore> store(new TlsStore(files));
  ASSIGN_OR_RETURN(TlsIdentity identity, LoadTlsIdentity(files));
  store->Take(std::move(identity));
  return store;
}

std::shared_ptr<const TlsIdentity> TlsStore::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void TlsStore::Take(TlsIdentity identity) {
  const std::chrono::duration<double> left =
      identity.valid_until - std::chrono::system_clock::now();
  const double days_left = left.count() / 86400;
  LogInfo(
      "event=certificate_loaded file={} subject=\"{}\" days_left={:.1f} client_certificates={}",
      files_.certificate.string(),
      identity.subject,
      days_left,
      !identity.client_ca.empty()
  );
  if (days_left < 0) {
    LogWarning("event=certificate_expired file={}", files_.certificate.string());
  }
  const MutexLock lock(mutex_);
  current_ = std::make_shared<const TlsIdentity>(std::move(identity));
}

void TlsStore::Reload() {
  const MutexLock lock(reload_mutex_);
  StatusOr<TlsIdentity> identity = LoadTlsIdentity(files_);
  if (!identity.ok()) {
    if (std::string error = MessageOf(identity.status()); error != last_error_) {
      last_error_ = std::move(error);
      LogError("event=certificate_not_reloaded reason=\"{}\"", last_error_);
    }
    return;
  }
  last_error_.clear();
  if (!Current()->HasSameFiles(*identity)) {
    Take(*std::move(identity));
  }
}

}  // namespace switchyard
