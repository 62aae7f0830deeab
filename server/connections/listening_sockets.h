#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace switchyard {

// Sockets that listen, and are closed at the end. One address may be several: localhost is one of
// each kind of IP.
class ListeningSockets {
 public:
  // `address` is HOST:PORT; port 0 takes any that is free. A wildcard of either kind listens on
  // both. INVALID_ARGUMENT for an address that is none, FAILED_PRECONDITION when it cannot be
  // listened on: no two servers share a port.
  static StatusOr<ListeningSockets> Open(const std::string& address);

  ListeningSockets() = default;
  ListeningSockets(ListeningSockets&& other) noexcept;
  ListeningSockets& operator=(ListeningSockets&& other) noexcept;
  ~ListeningSockets();

  const std::vector<int>& descriptors() const { return descriptors_; }
  int port() const { return port_; }

 private:
  std::vector<int> descriptors_;  // non-blocking
  int port_ = 0;
};

// An accepted connection, non-blocking and closed on exec.
struct AcceptedConnection {
  int descriptor = -1;  // -1: there is none at this moment
  std::string host;     // "10.0.0.7", "::1"
};
AcceptedConnection Accept(int listening);

// As many files as the system lets this process open; returns the number.
int64_t RaiseFileLimit();

}  // namespace switchyard
