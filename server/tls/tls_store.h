#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "server/tls/tls_identity.h"

namespace switchyard {

// The certificate that connections begin with from now on. Files that change on disk are taken up
// when they fit each other. Thread-safe.
class TlsStore {
 public:
  // As LoadTlsIdentity.
  static StatusOr<std::unique_ptr<TlsStore>> Open(const TlsFiles& files);

  std::shared_ptr<const TlsIdentity> Current() const;

  // Reads the files. While they cannot be used, half of them being replaced for example, what was
  // loaded before stays, and the log tells of it once.
  void Reload();

 private:
  explicit TlsStore(TlsFiles files) : files_(std::move(files)) {}
  void Take(TlsIdentity identity);

  const TlsFiles files_;
  Mutex reload_mutex_;  // held over a whole reload
  std::string last_error_ ABSL_GUARDED_BY(reload_mutex_);
  mutable Mutex mutex_;
  std::shared_ptr<const TlsIdentity> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
