#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"

namespace switchyard {

// The ids of the requests that are in the engine: refuses a second one of the same id, and makes
// ids for requests that have none. Thread-safe.
class RequestRegistry {
 public:
  // A registered id; gives it back when destroyed or released. Thread-compatible.
  class Registration {
   public:
    Registration() = default;
    Registration(RequestRegistry& owner, std::string id) : owner_(&owner), id_(std::move(id)) {}
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { Release(); }

    void Release();
    const std::string& id() const { return id_; }

   private:
    RequestRegistry* owner_ = nullptr;  // null when there is nothing to give back
    std::string id_;
  };

  // ALREADY_EXISTS when a request of this id is active. An empty id stands for a new one.
  StatusOr<Registration> Register(const std::string& id);

 private:
  void Remove(const std::string& id);

  Mutex mutex_;
  std::unordered_set<std::string> ids_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace switchyard
