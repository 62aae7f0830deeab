#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <thread>

#include "tests/server/running_server.h"

namespace switchyard {

inline ServerOptions OnBothPorts() {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.http.listen_address = "127.0.0.1:0";
  options.serving.log_requests = false;
  return options;
}

// A server whom others do harm, and a good client that must be served all the while.
class HostileClients : public ::testing::Test {
 protected:
  explicit HostileClients(const ServerOptions& options = OnBothPorts()) : server_(options) {
    server_.SetReady({'a'});
    good_ = std::thread([this] {
      while (!is_over_) {
        ServeOnce();
      }
    });
  }
  ~HostileClients() override { EndGoodClient(); }

  int grpc_port() { return server_.server().port(); }
  int http_port() { return *server_.server().http_port(); }

  // How often the good client was served since; all of it without an error.
  void ExpectGoodClientIsServed(int times) {
    const int before = served_;
    while (served_ < before + times && failed_ == 0) {
      std::this_thread::yield();
    }
    EXPECT_EQ(failed_, 0);
  }

 private:
  void ServeOnce() {
    httplib::Client http("127.0.0.1", http_port());
    const httplib::Result page = http.Get("/readyz");
    const bool was_served =
        Generate(server_.inference(), ShortRequest(2)).status.ok() && page && page->status == 200;
    ++(was_served ? served_ : failed_);
  }
  void EndGoodClient() {
    is_over_ = true;
    good_.join();
    EXPECT_EQ(failed_, 0);
  }

 protected:
  RunningServer server_;

 private:
  std::atomic<bool> is_over_ = false;
  std::atomic<int> served_ = 0;
  std::atomic<int> failed_ = 0;
  std::thread good_;
};

}  // namespace switchyard
