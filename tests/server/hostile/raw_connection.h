#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace switchyard {

struct Http2Frame {
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
  std::string payload;
};

// A TCP connection to a loopback port that sends whatever it is told.
class RawConnection {
 public:
  explicit RawConnection(int port, const char* from_address = "127.0.0.1");
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept;
  RawConnection& operator=(RawConnection&&) = delete;

  bool IsOpen() const { return descriptor_ >= 0; }
  // False when the other side has closed it.
  bool Send(std::string_view bytes) const;
  // All that comes until the other side closes it.
  std::string ReadToEnd() const;
  // The next frame of HTTP/2; absent when the other side closes first.
  std::optional<Http2Frame> ReadFrame() const;
  // Takes what has come and throws it away, so that the other side can go on sending.
  void Drain() const;

 private:
  // Less when the other side closes first.
  std::string Read(size_t bytes) const;

  int descriptor_;
};

// Connected to a loopback port from this address of the machine, for instance 127.0.0.2; -1 when
// that cannot be. The caller closes it.
int ConnectFrom(const char* address, int port);

// Opens a connection that stays open as long as the process; false when that cannot be. Makes
// system calls only.
bool ConnectAndSend(int port, std::string_view bytes);

// How an HTTP/2 client begins: the preface and empty settings.
std::string Http2Greeting();
// A frame of HTTP/2 with this length in its head, whatever follows.
std::string Http2FrameHead(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream);
std::string Http2FrameOf(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload);
// The head of a gRPC call of `method`, "/switchyard.v1.InferenceService/GetLoad".
std::string Http2CallHead(uint32_t stream, const std::string& method);
// A gRPC message of less than 256 bytes; with `is_last` the client has no more to send.
std::string Http2Message(uint32_t stream, const std::string& message, bool is_last);

inline constexpr uint8_t kHttp2Data = 0;
inline constexpr uint8_t kHttp2Headers = 1;
inline constexpr uint8_t kHttp2ResetStream = 3;
inline constexpr uint8_t kHttp2Settings = 4;
inline constexpr uint8_t kHttp2Ping = 6;
inline constexpr uint8_t kHttp2GoAway = 7;
inline constexpr uint8_t kHttp2Continuation = 9;
inline constexpr uint8_t kHttp2EndStream = 1;
inline constexpr uint8_t kHttp2Ack = 1;
inline constexpr uint8_t kHttp2EndHeaders = 4;

}  // namespace switchyard
