#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace switchyard {

// Why a generation was not begun.
enum class RefusalReason : uint8_t {
  kStreams,
  kQueuedRequests,
  kQueuedTokens,
  kPeerStreams,
  kHostStreams,
  kKeyLimit,
  kUnauthenticated,
  kInvalid,
  kUnavailable
};
inline constexpr std::array kRefusalReasons = {
    RefusalReason::kStreams,
    RefusalReason::kQueuedRequests,
    RefusalReason::kQueuedTokens,
    RefusalReason::kPeerStreams,
    RefusalReason::kHostStreams,
    RefusalReason::kKeyLimit,
    RefusalReason::kUnauthenticated,
    RefusalReason::kInvalid,
    RefusalReason::kUnavailable};

// As GetLoad spells it.
const char* NameOf(RefusalReason reason);

// What happened since the server began. Thread-safe.
class ServingCounters {
 public:
  void CountRefusal(RefusalReason reason) { ++refusals_[static_cast<size_t>(reason)]; }
  // Those whose code tells why. RESOURCE_EXHAUSTED does not: who found no room counts it.
  void CountRefusal(StatusCode code);
  void CountStall() { ++stalls_; }

  int64_t Refusals(RefusalReason reason) const { return refusals_[static_cast<size_t>(reason)]; }
  int64_t Stalls() const { return stalls_; }

 private:
  std::array<std::atomic<int64_t>, kRefusalReasons.size()> refusals_ = {};
  std::atomic<int64_t> stalls_ = 0;
};

}  // namespace switchyard
