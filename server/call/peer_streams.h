#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "base/status.h"

namespace switchyard {

// What a limit is called to those who meet it.
struct PeerLimitNames {
  const char* peer;     // "client"
  const char* streams;  // "generations"
  const char* flag;     // "--max-streams-per-peer"
};

// How many streams of a kind each client has open, so that one does not take the places of all.
// Thread-safe.
class PeerStreams {
 public:
  // 0: no limit.
  PeerStreams(int32_t max_per_peer, const PeerLimitNames& names)
      : max_per_peer_(max_per_peer), names_(names) {}

  // RESOURCE_EXHAUSTED when `peer` has as many as it may. Else Leave has to follow.
  Status Enter(const std::string& peer);
  void Leave(const std::string& peer);

 private:
  const int32_t max_per_peer_;
  const PeerLimitNames names_;
  Mutex mutex_;
  std::unordered_map<std::string, int32_t> open_ ABSL_GUARDED_BY(mutex_);
};

// The host of a peer as gRPC spells it: "ipv4:10.0.0.7:50122" -> "ipv4:10.0.0.7".
std::string HostOfPeer(const std::string& peer);

}  // namespace switchyard
