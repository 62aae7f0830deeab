#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <filesystem>

#include "server/access/api_key.h"
#include "server/http/http_server.h"
#include "tests/server/running_server.h"
#include "tests/support/captured_log.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

const std::string kKey = "sy_" + std::string(43, 'a');

class HttpSecurity : public ::testing::Test {
 protected:
  HttpSecurity() : authority_(folder_.path(), "authority") {
    authority_.Issue("server");
    options_.listen_address = "127.0.0.1:0";
    options_.http.listen_address = "127.0.0.1:0";
  }

  void UseTls() {
    options_.tls.certificate = authority_.Certificate("server");
    options_.tls.key = authority_.Key("server");
  }
  void UseKeys() {
    options_.api_keys = folder_.Write(
        "keys.json",
        "{\"keys\": [{\"name\": \"ann\", \"requests_per_minute\": 2, \"sha256\": \"" +
            HexOf(HashKey(kKey)) + "\"}]}"
    );
  }
  int Serve() {
    server_ = std::make_unique<RunningServer>(options_);
    server_->SetReady({'a'});
    return *server_->server().http_port();
  }
  // 0: no answer.
  static int Get(httplib::Client& client, const std::string& path, const std::string& key = "") {
    const httplib::Headers headers =
        key.empty() ? httplib::Headers() : httplib::Headers{{"Authorization", "Bearer " + key}};
    const httplib::Result result = client.Get(path, headers);
    return result ? result->status : 0;
  }
  httplib::Client Secure(int port, const TestCertificates& authority) {
    httplib::Client client(Concat("https://localhost:", port));
    client.set_ca_cert_path(authority.Authority().c_str());
    return client;
  }

  TemporaryFolder folder_;
  TestCertificates authority_;
  ServerOptions options_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(HttpSecurity, SpeaksTlsAndTakesUpNewCertificates) {
  UseTls();
  const int port = Serve();
  const TestCertificates next(folder_.path(), "next");
  httplib::Client secure = Secure(port, authority_);
  httplib::Client of_next = Secure(port, next);
  httplib::Client clear("localhost", port);

  EXPECT_EQ(Get(secure, "/healthz"), 200);
  EXPECT_EQ(Get(of_next, "/healthz"), 0);
  EXPECT_EQ(Get(clear, "/healthz"), 0);

  next.Issue("renewed");
  std::filesystem::rename(next.Certificate("renewed"), authority_.Certificate("server"));
  std::filesystem::rename(next.Key("renewed"), authority_.Key("server"));
  server_->server().ReloadFiles();
  EXPECT_EQ(Get(of_next, "/healthz"), 200);
}

TEST_F(HttpSecurity, AsksForCertificatesWhereGrpcDoes) {
  UseTls();
  options_.tls.client_ca = authority_.Authority();
  authority_.Issue("client");
  const int port = Serve();
  httplib::Client without = Secure(port, authority_);
  httplib::Client with(
      Concat("https://localhost:", port), authority_.Certificate("client"), authority_.Key("client")
  );
  with.set_ca_cert_path(authority_.Authority().c_str());

  EXPECT_EQ(Get(with, "/healthz"), 200);
  EXPECT_EQ(Get(without, "/healthz"), 0);
}

TEST_F(HttpSecurity, LeavesCertificatesOrTlsOutWhenTold) {
  UseTls();
  options_.tls.client_ca = authority_.Authority();
  options_.http.tls = HttpTls::kServerOnly;
  httplib::Client secure = Secure(Serve(), authority_);
  EXPECT_EQ(Get(secure, "/healthz"), 200);

  options_.http.tls = HttpTls::kOff;
  httplib::Client clear("localhost", Serve());
  EXPECT_EQ(Get(clear, "/healthz"), 200);
}

TEST_F(HttpSecurity, WantsAKeyForAllButTheProbesAndTheDashboardWithoutItsNumbers) {
  UseKeys();
  httplib::Client client("localhost", Serve());

  EXPECT_EQ(Get(client, "/healthz"), 200);
  EXPECT_EQ(Get(client, "/readyz"), 200);
  EXPECT_EQ(Get(client, "/"), 200);
  for (const char* path : {"/metrics", "/v1/info", "/v1/load", "/v1/experts", "/nothing"}) {
    EXPECT_EQ(Get(client, path), 401) << path;
  }
  EXPECT_EQ(client.Get("/metrics")->get_header_value("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(Get(client, "/metrics", kKey), 200);
  EXPECT_EQ(Get(client, "/v1/load", kKey), 200);
  EXPECT_EQ(Get(client, "/v1/load", kKey), 429);
}

TEST_F(HttpSecurity, OpensWhatItIsTold) {
  UseKeys();
  options_.http.open = HttpOpen::kMetrics;
  httplib::Client metrics("localhost", Serve());
  EXPECT_EQ(Get(metrics, "/metrics"), 200);
  EXPECT_EQ(Get(metrics, "/v1/load"), 401);

  options_.http.open = HttpOpen::kAll;
  httplib::Client all("localhost", Serve());
  EXPECT_EQ(Get(all, "/"), 200);
  EXPECT_EQ(Get(all, "/v1/load"), 200);
}

}  // namespace
}  // namespace switchyard
