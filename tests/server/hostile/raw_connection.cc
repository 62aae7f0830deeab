#include "tests/server/hostile/raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

namespace switchyard {
namespace {

// -1 when there is no connection.
int Connect(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

}  // namespace

bool ConnectAndSend(int port, std::string_view bytes) {
  const int descriptor = Connect(port);
  return descriptor >= 0 && send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                                static_cast<ssize_t>(bytes.size());
}

RawConnection::RawConnection(int port) : descriptor_(Connect(port)) {}

RawConnection::RawConnection(RawConnection&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

RawConnection::~RawConnection() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

bool RawConnection::Send(std::string_view bytes) const {
  return send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

std::string RawConnection::ReadToEnd() const {
  std::string text;
  std::array<char, 4096> piece = {};
  for (ssize_t bytes = 0; (bytes = recv(descriptor_, piece.data(), piece.size(), 0)) > 0;) {
    text.append(piece.data(), static_cast<size_t>(bytes));
  }
  return text;
}

std::string Http2FrameHead(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream) {
  std::string head;
  for (const int shift : {16, 8, 0}) {
    head += static_cast<char>(length >> shift);
  }
  head += static_cast<char>(type);
  head += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) {
    head += static_cast<char>(stream >> shift);
  }
  return head;
}

std::string Http2Greeting() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2FrameHead(0, 4, 0, 0);
}

}  // namespace switchyard
