#include "server/connections/connection_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

namespace switchyard {
namespace {

std::optional<uint64_t> InodeOf(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) {
    return std::nullopt;
  }
  return status.st_ino;
}

}  // namespace

bool ConnectionTable::HasRoom(const std::string& host) {
  if (IsFull(host)) {
    ForgetClosed();
  }
  return !IsFull(host);
}

bool ConnectionTable::IsFull(const std::string& host) const {
  const auto found = by_host_.find(host);
  const size_t of_host = found == by_host_.end() ? 0 : found->second;
  return (max_connections_ > 0 && connections_.size() >= max_connections_) ||
         (max_per_host_ > 0 && of_host >= max_per_host_);
}

void ConnectionTable::Add(int descriptor, const std::string& host) {
  connections_.push_back(
      {.descriptor = descriptor, .inode = InodeOf(descriptor).value_or(0), .host = host}
  );
  ++by_host_[host];
}

size_t ConnectionTable::Count() {
  ForgetClosed();
  return connections_.size();
}

void ConnectionTable::ForgetClosed() {
  const auto is_closed = [this](const Connection& connection) {
    if (InodeOf(connection.descriptor) == connection.inode) {
      return false;
    }
    const auto of_host = by_host_.find(connection.host);
    if (--of_host->second == 0) {
      by_host_.erase(of_host);
    }
    return true;
  };
  connections_.erase(
      std::remove_if(connections_.begin(), connections_.end(), is_closed), connections_.end()
  );
}

}  // namespace switchyard
