#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "server/tls/tls_identity.h"
#include "tests/server/running_server.h"
#include "tests/support/captured_log.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : authority_(folder_.path(), "authority") {
    authority_.Issue("server");
    authority_.Issue("other");
  }

  TlsFiles Files(const std::string& certificate, const std::string& key) const {
    return {
        .certificate = authority_.Certificate(certificate),
        .key = authority_.Key(key),
        .client_ca = {}};
  }

  TemporaryFolder folder_;
  TestCertificates authority_;
};

using TlsIdentityTest = TlsTest;

TEST_F(TlsIdentityTest, IsACertificateAndItsKey) {
  const auto identity = LoadTlsIdentity(Files("server", "server"));

  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->subject, "CN=server");
  EXPECT_EQ(identity->client_ca, "");
  EXPECT_GT(identity->valid_until, std::chrono::system_clock::now());
}

TEST_F(TlsIdentityTest, SaysWhichFileIsWrongAndWhy) {
  const auto complaint = [](const TlsFiles& files) {
    return MessageOf(LoadTlsIdentity(files).status());
  };
  folder_.Write("empty.pem", "");
  folder_.Write(
      "broken.pem",
      ReadWholeFile(authority_.Certificate("server")) + "-----BEGIN CERTIFICATE-----\nx"
  );
  TlsFiles bad_client_ca = Files("server", "server");
  bad_client_ca.client_ca = authority_.Key("server");

  TlsFiles half = Files("server", "server");
  half.key.clear();

  EXPECT_THAT(complaint(Files("none", "server")), HasSubstr("none.pem: cannot be read: No such"));
  EXPECT_THAT(complaint(Files("empty", "server")), HasSubstr("empty.pem: has no certificate"));
  EXPECT_THAT(
      complaint(Files("broken", "server")),
      HasSubstr("broken.pem: has 2 PEM blocks, of which only the first 1 are certificates")
  );
  TlsFiles no_key = Files("server", "server");
  no_key.key = authority_.Certificate("server");
  EXPECT_THAT(complaint(no_key), HasSubstr("server.pem: has no private key that can be read"));
  EXPECT_THAT(
      complaint(Files("server", "other")),
      HasSubstr("other.key: is not the key of the first certificate in ")
  );
  EXPECT_THAT(complaint(bad_client_ca), HasSubstr("server.key: has no certificate"));
  EXPECT_THAT(complaint(half), HasSubstr("give --tls-certificate and --tls-key"));
}

// A client that opens a connection of its own for each call.
grpc::Status CallOnce(int port, const grpc::SslCredentialsOptions& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::InferenceService::NewStub(
      grpc::CreateCustomChannel(Concat("localhost:", port), grpc::SslCredentials(tls), arguments)
  );
  grpc::ClientContext context;
  v1::GetLoadResponse load;
  return stub->GetLoad(&context, {}, &load);
}

class TlsServerTest : public TlsTest {
 protected:
  RunningServer Serve(const TlsFiles& files) {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.tls = files;
    return RunningServer(options);
  }
  grpc::SslCredentialsOptions Believing(const TestCertificates& authority) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadWholeFile(authority.Authority());
    return options;
  }
  grpc::SslCredentialsOptions With(const TestCertificates& authority, const std::string& subject) {
    grpc::SslCredentialsOptions options = Believing(authority_);
    options.pem_cert_chain = ReadWholeFile(authority.Certificate(subject));
    options.pem_private_key = ReadWholeFile(authority.Key(subject));
    return options;
  }
};

TEST_F(TlsServerTest, ServesOverTlsAndNotInTheClear) {
  RunningServer server = Serve(Files("server", "server"));
  server.SetReady({'a'});
  const TestCertificates stranger(folder_.path(), "stranger");

  EXPECT_TRUE(CallOnce(server.server().port(), Believing(authority_)).ok());
  EXPECT_EQ(
      CallOnce(server.server().port(), Believing(stranger)).error_code(),
      grpc::StatusCode::UNAVAILABLE
  );
  // The server's own channel is plaintext.
  EXPECT_EQ(
      Generate(server.inference(), ShortRequest(1)).status.error_code(),
      grpc::StatusCode::UNAVAILABLE
  );
}

TEST_F(TlsServerTest, WantsACertificateOfItsClientsWhenToldSo) {
  TlsFiles files = Files("server", "server");
  files.client_ca = authority_.Authority();
  RunningServer server = Serve(files);
  server.SetReady({'a'});
  const TestCertificates stranger(folder_.path(), "stranger");
  stranger.Issue("impostor");
  const int port = server.server().port();

  EXPECT_TRUE(CallOnce(port, With(authority_, "other")).ok());
  EXPECT_EQ(CallOnce(port, Believing(authority_)).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallOnce(port, With(stranger, "impostor")).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsServerTest, TakesUpNewFilesAndKeepsTheOldOnesWhileTheNewDoNotFit) {
  CapturedLog log;
  RunningServer server = Serve(Files("server", "server"));
  server.SetReady({'a'});
  const int port = server.server().port();
  ASSERT_TRUE(CallOnce(port, Believing(authority_)).ok());
  const TestCertificates next(folder_.path(), "next");
  next.Issue("renewed");

  // Half of it is there.
  std::filesystem::rename(next.Certificate("renewed"), authority_.Certificate("server"));
  server.server().ReloadFiles();
  server.server().ReloadFiles();
  EXPECT_TRUE(CallOnce(port, Believing(authority_)).ok());
  EXPECT_THAT(
      log.WaitFor("event=certificate_not_reloaded"), HasSubstr("is not the key of the first")
  );

  std::filesystem::rename(next.Key("renewed"), authority_.Key("server"));
  server.server().ReloadFiles();
  EXPECT_TRUE(CallOnce(port, Believing(next)).ok());
  EXPECT_FALSE(CallOnce(port, Believing(authority_)).ok());
  EXPECT_THAT(log.WaitFor("subject=\"CN=renewed\""), HasSubstr("event=certificate_loaded"));
}

TEST_F(TlsServerTest, DoesNotStartWithFilesThatDoNotFit) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.tls = Files("server", "other");

  EXPECT_THAT(
      MessageOf(Server::Listen(options).status()), HasSubstr("is not the key of the first")
  );
}

}  // namespace
}  // namespace switchyard
