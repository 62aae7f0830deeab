#include "server/http/page_server.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"

namespace switchyard {
namespace {

constexpr char kBroken[] = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
constexpr char kUnreadable[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";

// A client that has sent all it will, and takes everything at once.
class TextStream final : public httplib::Stream {
 public:
  TextStream(const std::string& input, std::string host) : input_(input), host_(std::move(host)) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t bytes) override {
    const size_t moved = input_.copy(to, bytes, position_);
    position_ += moved;
    return static_cast<ssize_t>(moved);
  }
  ssize_t write(const char* from, size_t bytes) override {
    output_.append(from, bytes);
    return static_cast<ssize_t>(bytes);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = host_;
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string TakeOutput() { return std::move(output_); }

 private:
  const std::string& input_;
  const std::string host_;
  size_t position_ = 0;
  std::string output_;
};

}  // namespace

std::string PageServer::Answer(const std::string& head, const std::string& host) {
  try {
    TextStream stream(head, host);
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, nullptr);
    std::string response = stream.TakeOutput();
    return response.empty() ? kUnreadable : response;
  } catch (const std::exception& error) {
    LogError("event=http_answer_failed reason=\"{}\"", error.what());
    return kBroken;
  }
}

}  // namespace switchyard
