#include "server/generation/request_registry.h"

#include <utility>

namespace switchyard {

RequestRegistry::Registration::Registration(Registration&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), id_(std::move(other.id_)) {}

RequestRegistry::Registration& RequestRegistry::Registration::operator=(Registration&& other
) noexcept {
  if (this != &other) {
    Release();
    owner_ = std::exchange(other.owner_, nullptr);
    id_ = std::move(other.id_);
  }
  return *this;
}

void RequestRegistry::Registration::Release() {
  if (owner_ != nullptr) {
    std::exchange(owner_, nullptr)->Remove(id_);
  }
}

StatusOr<RequestRegistry::Registration> RequestRegistry::Register(const std::string& id) {
  const MutexLock lock(mutex_);
  if (!id.empty()) {
    if (!ids_.insert(id).second) {
      return Status(
          StatusCode::kAlreadyExists,
          Concat(
              "request_id \"",
              id,
              "\" belongs to a request that is running; choose another, or leave it ",
              "out and the server makes one"
          )
      );
    }
    return Registration(*this, id);
  }
  while (true) {
    // A client may have chosen a name of this form itself, so look before taking it.
    std::string made = Concat("request-", next_number_++);
    if (ids_.insert(made).second) {
      return Registration(*this, std::move(made));
    }
  }
}

void RequestRegistry::Remove(const std::string& id) {
  const MutexLock lock(mutex_);
  ids_.erase(id);
}

}  // namespace switchyard
