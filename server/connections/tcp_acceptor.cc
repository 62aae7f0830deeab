#include "server/connections/tcp_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"

namespace switchyard {
namespace {

// When the process has no file left to accept with: until another connection closes.
constexpr std::chrono::milliseconds kPauseWithoutFiles{50};

}  // namespace

TcpAcceptor::TcpAcceptor(ListeningSockets sockets, int32_t max_connections, int32_t max_per_host)
    : sockets_(std::move(sockets)),
      port_(sockets_->port()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      table_(static_cast<size_t>(max_connections), static_cast<size_t>(max_per_host)) {
  CHECK(wake_ >= 0) << "the system gave no event file";
}

void TcpAcceptor::Start(Handler handler) {
  handler_ = std::move(handler);
  thread_ = std::thread([this] { Run(); });
}

void TcpAcceptor::Stop() {
  if (wake_ < 0) {
    return;
  }
  eventfd_write(wake_, 1);
  if (thread_.joinable()) {
    thread_.join();
  }
  close(std::exchange(wake_, -1));
  sockets_.reset();
}

void TcpAcceptor::Run() {
  std::vector<pollfd> files = {{.fd = wake_, .events = POLLIN, .revents = 0}};
  for (const int descriptor : sockets_->descriptors()) {
    files.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  while (true) {
    poll(files.data(), files.size(), -1);
    if (files.front().revents != 0) {
      return;
    }
    for (const pollfd& file : files) {
      if (file.revents != 0) {
        AcceptAll(file.fd);
      }
    }
  }
}

void TcpAcceptor::AcceptAll(int listening) {
  while (true) {
    const AcceptedConnection connection = Accept(listening);
    if (connection.descriptor < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        std::this_thread::sleep_for(kPauseWithoutFiles);
      }
      return;
    }
    if (table_.HasRoom(connection.host)) {
      table_.Add(connection.descriptor, connection.host);
      handler_(listening, connection.descriptor);
      continue;
    }
    close(connection.descriptor);
    if (const std::optional<int64_t> left_out = refusals_.Admit(Clock::now())) {
      LogWarning("event=connection_refused host={} refused_before={}", connection.host, *left_out);
    }
  }
}

}  // namespace switchyard
