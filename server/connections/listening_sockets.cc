#include "server/connections/listening_sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "server/listen_address.h"

namespace switchyard {
namespace {

constexpr int kBacklog = 1024;

void SetFlag(int descriptor, int level, int name, int value) {
  setsockopt(descriptor, level, name, &value, sizeof(value));
}

int PortOf(int descriptor) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof(address);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes);
  // Both kinds have the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// -1 when it cannot be listened on.
int ListenOn(const sockaddr* address, socklen_t bytes) {
  const int descriptor =
      socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (descriptor < 0) {
    return -1;
  }
  SetFlag(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  // What is accepted inherits it: a token is a small packet, and must not wait for the next.
  SetFlag(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  if (address->sa_family == AF_INET6) {
    const auto* const ipv6 = reinterpret_cast<const sockaddr_in6*>(address);
    SetFlag(
        descriptor, IPPROTO_IPV6, IPV6_V6ONLY, IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr) ? 0 : 1
    );
  }
  if (bind(descriptor, address, bytes) != 0 || listen(descriptor, kBacklog) != 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};

std::unique_ptr<addrinfo, FreeAddresses> Resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* addresses = nullptr;
  return std::unique_ptr<addrinfo, FreeAddresses>(
      getaddrinfo(host.c_str(), nullptr, &hints, &addresses) == 0 ? addresses : nullptr
  );
}

void SetPort(sockaddr* address, int port) {
  reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(static_cast<uint16_t>(port));
}

}  // namespace

StatusOr<ListeningSockets> ListeningSockets::Open(const std::string& address) {
  ASSIGN_OR_RETURN(const HostAndPort wanted, ParseHostAndPort(address));
  ListeningSockets sockets;
  sockets.port_ = wanted.port;
  if (wanted.host == "0.0.0.0" || wanted.host == "::") {
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<uint16_t>(wanted.port));
    const int descriptor = ListenOn(reinterpret_cast<const sockaddr*>(&any), sizeof(any));
    if (descriptor >= 0) {
      sockets.descriptors_ = {descriptor};
      sockets.port_ = PortOf(descriptor);
      return sockets;
    }
  }
  const auto addresses = Resolve(wanted.host);
  for (addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) {
    SetPort(next->ai_addr, sockets.port_);
    const int descriptor = ListenOn(next->ai_addr, next->ai_addrlen);
    if (descriptor >= 0) {
      sockets.descriptors_.push_back(descriptor);
      sockets.port_ = PortOf(descriptor);
    }
  }
  if (sockets.descriptors_.empty()) {
    return FailedPrecondition(
        "cannot listen on \"",
        address,
        "\": another process has the port, or this machine has no such address; choose another"
    );
  }
  return sockets;
}

ListeningSockets::ListeningSockets(ListeningSockets&& other) noexcept
    : descriptors_(std::exchange(other.descriptors_, {})), port_(other.port_) {}

ListeningSockets& ListeningSockets::operator=(ListeningSockets&& other) noexcept {
  std::swap(descriptors_, other.descriptors_);
  port_ = other.port_;
  return *this;
}

ListeningSockets::~ListeningSockets() {
  for (const int descriptor : descriptors_) {
    close(descriptor);
  }
}

AcceptedConnection Accept(int listening) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof(address);
  auto* const peer = reinterpret_cast<sockaddr*>(&address);
  AcceptedConnection accepted;
  accepted.descriptor = accept4(listening, peer, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted.descriptor >= 0) {
    std::array<char, NI_MAXHOST> host = {};
    getnameinfo(peer, bytes, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
    accepted.host = host.data();
  }
  return accepted;
}

int64_t RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 1024;
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, rlim_t{1} << 40));
}

}  // namespace switchyard
