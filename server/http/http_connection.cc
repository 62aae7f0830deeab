#include "server/http/http_connection.h"

#include <algorithm>

namespace switchyard {

void HttpConnection::Advance() {
  switch (phase_) {
    case Phase::kReading:
      Read();
      return;
    case Phase::kWriting:
      Write();
      return;
    case Phase::kClosing:
      Discard();
      return;
    case Phase::kAnswering:
    case Phase::kClosed:
      return;
  }
}

void HttpConnection::Read() {
  while (phase_ == Phase::kReading) {
    // The line may end in a part that has been looked at.
    const size_t looked_at = std::max<size_t>(text_.size(), 3) - 3;
    const ChannelResult result = channel_.Read(text_);
    const size_t end = text_.find("\r\n\r\n", looked_at);
    if (end != std::string::npos) {
      text_.resize(end + 4);
      phase_ = Phase::kAnswering;
    } else if (result.wait == ChannelWait::kClosed || text_.size() > kMaxHeadBytes) {
      phase_ = Phase::kClosed;
    } else if (result.wait != ChannelWait::kNothing) {
      wait_ = result.wait;
      return;
    }
  }
}

void HttpConnection::SetAnswer(std::string answer, Clock::time_point deadline) {
  text_ = std::move(answer);
  deadline_ = deadline;
  wait_ = ChannelWait::kWritable;
  phase_ = Phase::kWriting;
}

void HttpConnection::Write() {
  while (written_ < text_.size()) {
    const ChannelResult result = channel_.Write(std::string_view(text_).substr(written_));
    written_ += result.bytes;
    if (result.wait == ChannelWait::kClosed) {
      phase_ = Phase::kClosed;
      return;
    }
    if (result.wait != ChannelWait::kNothing) {
      wait_ = result.wait;
      return;
    }
  }
  text_.clear();
  channel_.EndWriting();
  wait_ = ChannelWait::kReadable;
  phase_ = Phase::kClosing;
}

void HttpConnection::Discard() {
  // A piece each time: who sends for ever gets its turn, and no more, until the deadline.
  const ChannelResult result = channel_.Read(text_);
  text_.clear();
  if (result.wait == ChannelWait::kClosed) {
    phase_ = Phase::kClosed;
  }
}

}  // namespace switchyard
