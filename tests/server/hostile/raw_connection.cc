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

sockaddr_in AddressOf(const char* host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

// What HPACK writes for a header that neither side remembers, both texts shorter than 127.
std::string Http2Header(const std::string& name, const std::string& value) {
  std::string header(1, '\0');
  for (const std::string& text : {name, value}) {
    header += static_cast<char>(text.size());
    header += text;
  }
  return header;
}

uint32_t NumberOf(std::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes) {
    number = number << 8 | static_cast<uint8_t>(byte);
  }
  return number;
}

}  // namespace

int ConnectFrom(const char* address, int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in from = AddressOf(address, 0);
  const sockaddr_in to = AddressOf("127.0.0.1", port);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) == 0 &&
      connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

bool ConnectAndSend(int port, std::string_view bytes) {
  const int descriptor = ConnectFrom("127.0.0.1", port);
  return descriptor >= 0 && send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                                static_cast<ssize_t>(bytes.size());
}

RawConnection::RawConnection(int port, const char* from_address)
    : descriptor_(ConnectFrom(from_address, port)) {}

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

std::string RawConnection::Read(size_t bytes) const {
  std::string text(bytes, '\0');
  const ssize_t read = recv(descriptor_, text.data(), bytes, MSG_WAITALL);
  text.resize(read < 0 ? 0 : static_cast<size_t>(read));
  return text;
}

std::optional<Http2Frame> RawConnection::ReadFrame() const {
  constexpr size_t kHeadBytes = 9;
  const std::string head = Read(kHeadBytes);
  if (head.size() < kHeadBytes) {
    return std::nullopt;
  }
  const std::string_view fields = head;
  const uint32_t length = NumberOf(fields.substr(0, 3));
  return Http2Frame{
      .type = static_cast<uint8_t>(head[3]),
      .flags = static_cast<uint8_t>(head[4]),
      .stream = NumberOf(fields.substr(5)),
      .payload = length == 0 ? "" : Read(length)};
}

void RawConnection::Drain() const {
  std::array<char, 4096> piece = {};
  while (recv(descriptor_, piece.data(), piece.size(), MSG_DONTWAIT) > 0) {
  }
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

std::string Http2FrameOf(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return Http2FrameHead(static_cast<uint32_t>(payload.size()), type, flags, stream) + payload;
}

std::string Http2CallHead(uint32_t stream, const std::string& method) {
  const std::string headers =
      Http2Header(":method", "POST") + Http2Header(":scheme", "http") +
      Http2Header(":path", method) + Http2Header(":authority", "localhost") +
      Http2Header("content-type", "application/grpc") + Http2Header("te", "trailers");
  return Http2FrameOf(kHttp2Headers, kHttp2EndHeaders, stream, headers);
}

std::string Http2Message(uint32_t stream, const std::string& message, bool is_last) {
  std::string framed(5, '\0');
  framed.back() = static_cast<char>(message.size());
  return Http2FrameOf(kHttp2Data, is_last ? kHttp2EndStream : 0, stream, framed + message);
}

std::string Http2Greeting() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2FrameHead(0, 4, 0, 0);
}

}  // namespace switchyard
