#pragma once

#include <memory>
#include <string>

#include "engine/request.h"
#include "server/http/byte_channel.h"

namespace switchyard {

// One request and its answer over one connection: the head is read until its empty line, somebody
// answers it, the answer is written, and what the client still sends is read away, so that the
// answer is not lost in a reset. Never waits. Thread-compatible.
class HttpConnection {
 public:
  enum class Phase : uint8_t { kReading, kAnswering, kWriting, kClosing, kClosed };

  // More than this before the empty line is no head of a client of ours.
  static constexpr size_t kMaxHeadBytes = 8192;

  HttpConnection(
      int descriptor,
      const std::shared_ptr<SSL_CTX>& context,
      std::string host,
      Clock::time_point deadline
  )
      : channel_(descriptor, context), host_(std::move(host)), deadline_(deadline) {}

  // Goes on as far as it can.
  void Advance();
  // Requires: kAnswering.
  void SetAnswer(std::string answer, Clock::time_point deadline);

  Phase phase() const { return phase_; }
  // What to wait for before the next Advance.
  ChannelWait wait() const { return wait_; }
  // When the phase has taken too long; those of kAnswering have none.
  bool IsLate(Clock::time_point now) const {
    return phase_ != Phase::kAnswering && now >= deadline_;
  }
  Clock::time_point deadline() const { return deadline_; }
  int descriptor() const { return channel_.descriptor(); }
  const std::string& host() const { return host_; }
  // Requires: kAnswering.
  const std::string& head() const { return text_; }

 private:
  void Read();
  void Write();
  void Discard();

  ByteChannel channel_;
  const std::string host_;
  Clock::time_point deadline_;
  Phase phase_ = Phase::kReading;
  ChannelWait wait_ = ChannelWait::kReadable;
  std::string text_;  // the head, then what is left of the answer
  size_t written_ = 0;
};

}  // namespace switchyard
