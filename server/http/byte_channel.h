#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace switchyard {

// What a channel waits for when it could not go on.
enum class ChannelWait : uint8_t { kNothing, kReadable, kWritable, kClosed };

struct ChannelResult {
  size_t bytes = 0;  // moved
  ChannelWait wait = ChannelWait::kNothing;
};

// A connection without blocking, in the clear or over TLS, whose handshake is part of the first
// reads. Owns and closes the descriptor. Thread-compatible.
class ByteChannel {
 public:
  // `context` may be null (in the clear).
  ByteChannel(int descriptor, const std::shared_ptr<SSL_CTX>& context);
  ~ByteChannel();
  ByteChannel(const ByteChannel&) = delete;
  ByteChannel& operator=(const ByteChannel&) = delete;

  // Appends what is there, 4 KiB at most.
  ChannelResult Read(std::string& text);
  ChannelResult Write(std::string_view text);
  // Nothing is written after it; what the client sends is still read.
  void EndWriting();

  int descriptor() const { return descriptor_; }

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  // Of the last call of OpenSSL.
  ChannelResult ResultOf(int returned);

  const int descriptor_;
  std::unique_ptr<SSL, FreeSsl> ssl_;  // null in the clear
};

}  // namespace switchyard
