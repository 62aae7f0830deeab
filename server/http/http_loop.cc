#include "server/http/http_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace switchyard {
namespace {

constexpr size_t kWorkers = 4;
constexpr size_t kMaxConnections = 256;
constexpr std::chrono::milliseconds kPauseWithoutFiles{50};

int16_t EventsOf(const HttpConnection& connection) {
  if (connection.phase() == HttpConnection::Phase::kAnswering) {
    return 0;
  }
  return connection.wait() == ChannelWait::kWritable ? POLLOUT : POLLIN;
}

}  // namespace

HttpLoop::HttpLoop(ListeningSockets sockets, const HttpLoopOptions& options, Answerer answerer)
    : sockets_(std::move(sockets)),
      options_(options),
      answerer_(std::move(answerer)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      // Room for all, so that handing one over never waits.
      workers_(kWorkers, kMaxConnections) {
  CHECK(wake_ >= 0) << "the system gave no event file";
  thread_ = std::thread([this] { Run(); });
}

HttpLoop::~HttpLoop() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
  }
  eventfd_write(wake_, 1);
  thread_.join();
  workers_.shutdown();
  close(wake_);
}

void HttpLoop::Run() {
  while (true) {
    WaitForEvents();
    {
      const MutexLock lock(mutex_);
      if (is_ending_) {
        return;
      }
    }
    TakeAnswers();
    const Clock::time_point now = Clock::now();
    connections_.remove_if([now](const std::shared_ptr<HttpConnection>& connection) {
      return connection->phase() == HttpConnection::Phase::kClosed || connection->IsLate(now);
    });
  }
}

void HttpLoop::WaitForEvents() {
  std::vector<pollfd> files = {{.fd = wake_, .events = POLLIN, .revents = 0}};
  for (const int descriptor : sockets_.descriptors()) {
    files.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  const size_t first = files.size();
  std::vector<std::shared_ptr<HttpConnection>> polled;
  Clock::time_point next = Clock::time_point::max();
  for (const std::shared_ptr<HttpConnection>& connection : connections_) {
    const int16_t events = EventsOf(*connection);
    if (events != 0) {
      files.push_back({.fd = connection->descriptor(), .events = events, .revents = 0});
      polled.push_back(connection);
      next = std::min(next, connection->deadline());
    }
  }
  int wait_ms = -1;
  if (!polled.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    wait_ms = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }
  poll(files.data(), files.size(), wait_ms);
  if (files.front().revents != 0) {
    eventfd_t count = 0;
    eventfd_read(wake_, &count);
  }
  for (size_t i = first; i < files.size(); ++i) {
    if (files[i].revents != 0) {
      Advance(polled[i - first]);
    }
  }
  for (size_t i = 1; i < first; ++i) {
    if (files[i].revents != 0) {
      AcceptAll(files[i].fd);
    }
  }
}

void HttpLoop::Advance(const std::shared_ptr<HttpConnection>& connection) {
  connection->Advance();
  if (connection->phase() != HttpConnection::Phase::kAnswering) {
    return;
  }
  workers_.enqueue([this, connection] {
    std::string text = answerer_(connection->head(), connection->host());
    const MutexLock lock(mutex_);
    answered_.push_back({.connection = connection, .text = std::move(text)});
    eventfd_write(wake_, 1);
  });
}

void HttpLoop::TakeAnswers() {
  std::vector<Answered> answered;
  {
    const MutexLock lock(mutex_);
    answered.swap(answered_);
  }
  for (Answered& answer : answered) {
    answer.connection->SetAnswer(std::move(answer.text), Clock::now() + options_.client_timeout);
    answer.connection->Advance();
  }
}

void HttpLoop::MakeRoom() {
  if (connections_.size() < kMaxConnections) {
    return;
  }
  const auto oldest = std::find_if(connections_.begin(), connections_.end(), [](const auto& one) {
    return one->phase() != HttpConnection::Phase::kAnswering;
  });
  connections_.erase(oldest == connections_.end() ? connections_.begin() : oldest);
}

void HttpLoop::AcceptAll(int listening) {
  while (true) {
    AcceptedConnection accepted = Accept(listening);
    if (accepted.descriptor < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        std::this_thread::sleep_for(kPauseWithoutFiles);
      }
      return;
    }
    const std::shared_ptr<SSL_CTX> context = CurrentContext();
    if (options_.tls != nullptr && context == nullptr) {
      close(accepted.descriptor);
      continue;
    }
    MakeRoom();
    connections_.push_back(std::make_shared<HttpConnection>(
        accepted.descriptor,
        context,
        std::move(accepted.host),
        Clock::now() + options_.client_timeout
    ));
    Advance(connections_.back());
  }
}

std::shared_ptr<SSL_CTX> HttpLoop::CurrentContext() {
  if (options_.tls == nullptr) {
    return nullptr;
  }
  std::shared_ptr<const TlsIdentity> current = options_.tls->Current();
  if (current != identity_) {
    StatusOr<std::shared_ptr<SSL_CTX>> context =
        MakeTlsContext(*current, options_.client_certificates);
    if (context.ok()) {
      context_ = *std::move(context);
    } else {
      LogError("event=http_certificate_not_used reason=\"{}\"", MessageOf(context.status()));
    }
    identity_ = std::move(current);
  }
  return context_;
}

}  // namespace switchyard
