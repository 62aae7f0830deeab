#include "server/call/peer_streams.h"

namespace switchyard {

Status PeerStreams::Enter(const std::string& peer) {
  const MutexLock lock(mutex_);
  int32_t& open = open_[peer];
  if (max_per_peer_ > 0 && open >= max_per_peer_) {
    return ResourceExhausted(
        "this ",
        names_.peer,
        " has ",
        open,
        " ",
        names_.streams,
        " open; this server takes ",
        max_per_peer_,
        " of one ",
        names_.peer,
        " (",
        names_.flag,
        "); try again when one has ended"
    );
  }
  ++open;
  return OkStatus();
}

void PeerStreams::Leave(const std::string& peer) {
  const MutexLock lock(mutex_);
  const auto found = open_.find(peer);
  if (found != open_.end() && --found->second == 0) {
    open_.erase(found);
  }
}

std::string HostOfPeer(const std::string& peer) {
  const size_t port = peer.rfind(':');
  return peer.rfind("ip", 0) == 0 && port != std::string::npos ? peer.substr(0, port) : peer;
}

}  // namespace switchyard
