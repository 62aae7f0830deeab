#include "server/http/byte_channel.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace switchyard {
namespace {

ChannelResult ResultOfSystem(ssize_t returned, ChannelWait wait) {
  if (returned > 0) {
    return {.bytes = static_cast<size_t>(returned)};
  }
  const bool would_block =
      returned < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return {.wait = would_block ? wait : ChannelWait::kClosed};
}

}  // namespace

ByteChannel::ByteChannel(int descriptor, const std::shared_ptr<SSL_CTX>& context)
    : descriptor_(descriptor) {
  if (context != nullptr) {
    ssl_.reset(SSL_new(context.get()));
    SSL_set_fd(ssl_.get(), descriptor);
    SSL_set_accept_state(ssl_.get());
  }
}

ByteChannel::~ByteChannel() {
  ssl_.reset();
  close(descriptor_);
}

ChannelResult ByteChannel::ResultOf(int returned) {
  if (returned > 0) {
    return {.bytes = static_cast<size_t>(returned)};
  }
  const int error = SSL_get_error(ssl_.get(), returned);
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_WANT_READ:
      return {.wait = ChannelWait::kReadable};
    case SSL_ERROR_WANT_WRITE:
      return {.wait = ChannelWait::kWritable};
    default:
      return {.wait = ChannelWait::kClosed};
  }
}

ChannelResult ByteChannel::Read(std::string& text) {
  std::array<char, 4096> piece = {};
  ChannelResult result;
  if (ssl_ != nullptr) {
    ERR_clear_error();
    result = ResultOf(SSL_read(ssl_.get(), piece.data(), static_cast<int>(piece.size())));
  } else {
    result =
        ResultOfSystem(recv(descriptor_, piece.data(), piece.size(), 0), ChannelWait::kReadable);
  }
  text.append(piece.data(), result.bytes);
  return result;
}

ChannelResult ByteChannel::Write(std::string_view text) {
  if (ssl_ != nullptr) {
    constexpr size_t kMostBytes = 1 << 20;
    ERR_clear_error();
    return ResultOf(
        SSL_write(ssl_.get(), text.data(), static_cast<int>(std::min(text.size(), kMostBytes)))
    );
  }
  return ResultOfSystem(
      send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL), ChannelWait::kWritable
  );
}

void ByteChannel::EndWriting() {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  shutdown(descriptor_, SHUT_WR);
}

}  // namespace switchyard
