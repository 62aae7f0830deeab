#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace switchyard {

// The connections that were handed to gRPC, which closes them and tells nobody. A descriptor that
// is closed, or stands for another file now, is found out when room is needed. Thread-compatible.
class ConnectionTable {
 public:
  // 0: no limit.
  ConnectionTable(size_t max_connections, size_t max_per_host)
      : max_connections_(max_connections), max_per_host_(max_per_host) {}

  // Whether one more of this host fits. Looks for closed ones when it does not seem to.
  bool HasRoom(const std::string& host);
  // Requires: `descriptor` is open.
  void Add(int descriptor, const std::string& host);

  size_t Count();

 private:
  struct Connection {
    int descriptor;
    uint64_t inode;  // of the socket; no two that exist have the same
    std::string host;
  };

  bool IsFull(const std::string& host) const;
  void ForgetClosed();

  const size_t max_connections_;
  const size_t max_per_host_;
  std::vector<Connection> connections_;
  std::unordered_map<std::string, size_t> by_host_;
};

}  // namespace switchyard
