#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace switchyard {

// A TCP connection to a loopback port that sends whatever it is told.
class RawConnection {
 public:
  explicit RawConnection(int port);
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept;
  RawConnection& operator=(RawConnection&&) = delete;

  bool IsOpen() const { return descriptor_ >= 0; }
  // False when the other side has closed it.
  bool Send(std::string_view bytes) const;
  // All that comes until the other side closes it.
  std::string ReadToEnd() const;

 private:
  int descriptor_;
};

// Opens a connection that stays open as long as the process; false when that cannot be. Makes
// system calls only.
bool ConnectAndSend(int port, std::string_view bytes);

// How an HTTP/2 client begins: the preface and empty settings.
std::string Http2Greeting();
// A frame of HTTP/2 with this length in its head, whatever follows.
std::string Http2FrameHead(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream);

}  // namespace switchyard
