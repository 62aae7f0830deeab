#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>
#include <thread>
#include <vector>

#include "server/connections/listening_sockets.h"
#include "tests/server/generic_call.h"
#include "tests/server/hostile/hostile_clients.h"
#include "tests/server/hostile/raw_connection.h"
#include "tests/server/running_server.h"
#include "tests/support/captured_log.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(HostileClients, ThatDripBytesHoldUpNobody) {
  std::vector<RawConnection> dripping;
  for (int i = 0; i < 200; ++i) {
    dripping.emplace_back(http_port());
    dripping.emplace_back(grpc_port());
  }
  const std::string http = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";
  const std::string http2 = Http2Greeting();

  for (size_t sent = 0; sent < 30; ++sent) {
    for (size_t i = 0; i < dripping.size(); ++i) {
      const std::string& text = i % 2 == 0 ? http : http2;
      dripping[i].Send(text.substr(sent, 1));
    }
    ExpectGoodClientIsServed(1);
  }
  ExpectGoodClientIsServed(5);
}

TEST_F(HostileClients, ThatReadNothingHoldUpNobody) {
  std::vector<RawConnection> silent;
  for (int i = 0; i < 100; ++i) {
    silent.emplace_back(http_port());
    ASSERT_TRUE(silent.back().Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }

  ExpectGoodClientIsServed(10);
}

TEST_F(HostileClients, ThatSendGarbageHarmNobody) {
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    std::string garbage(1 + random() % 3000, '\0');
    for (char& byte : garbage) {
      byte = static_cast<char>(random());
    }
    const std::string greeting = i % 2 == 0 ? "" : Http2Greeting();
    RawConnection(grpc_port()).Send(greeting + garbage);
    RawConnection(http_port()).Send(garbage + "\r\n\r\n");
    RawConnection(http_port()).Send("GET " + garbage + " HTTP/1.1\r\n\r\n");
  }

  ExpectGoodClientIsServed(10);
}

TEST_F(HostileClients, ThatSendOversizedFramesAreCutOff) {
  const RawConnection data(grpc_port());
  ASSERT_TRUE(data.Send(Http2Greeting() + Http2FrameHead(0xFFFFFF, 0, 0, 1)));
  const RawConnection headers(grpc_port());
  ASSERT_TRUE(headers.Send(Http2Greeting() + Http2FrameHead(0x800000, 1, 4, 1)));
  const RawConnection settings(grpc_port());
  ASSERT_TRUE(settings.Send(Http2Greeting() + Http2FrameHead(5, 4, 0, 0) + "12345"));

  // Each ends, after what the server has to say.
  data.ReadToEnd();
  headers.ReadToEnd();
  settings.ReadToEnd();
  ExpectGoodClientIsServed(5);
}

TEST_F(HostileClients, ThatSendOversizedHeadsAreCutOff) {
  const RawConnection http(http_port());
  http.Send("GET /metrics HTTP/1.1\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(http.ReadToEnd(), "");

  grpc::ChannelArguments own_connection;
  own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::InferenceService::NewStub(grpc::CreateCustomChannel(
      Concat("127.0.0.1:", grpc_port()), grpc::InsecureChannelCredentials(), own_connection
  ));
  grpc::ClientContext context;
  context.AddMetadata("x-large", std::string(100'000, 'x'));
  v1::GetLoadResponse load;
  const grpc::Status status = stub->GetLoad(&context, {}, &load);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectGoodClientIsServed(5);
}

// Each message that a client sends, with one string field at a time that is no UTF-8.
class BadStrings {
 public:
  explicit BadStrings(const google::protobuf::Message& request) { Visit(request, {}); }

  struct Case {
    std::string path;
    std::string bytes;
  };
  const std::vector<Case>& cases() const { return cases_; }

 private:
  using Field = const google::protobuf::FieldDescriptor*;

  void Visit(const google::protobuf::Message& root, const std::vector<Field>& path) {
    const google::protobuf::Descriptor* type =
        path.empty() ? root.GetDescriptor() : path.back()->message_type();
    for (int i = 0; i < type->field_count(); ++i) {
      std::vector<Field> longer = path;
      longer.push_back(type->field(i));
      if (type->field(i)->type() == google::protobuf::FieldDescriptor::TYPE_STRING) {
        Add(root, longer);
      } else if (type->field(i)->message_type() != nullptr && !type->field(i)->is_map()) {
        Visit(root, longer);
      }
    }
  }

  void Add(const google::protobuf::Message& root, const std::vector<Field>& path) {
    const std::unique_ptr<google::protobuf::Message> request(root.New());
    google::protobuf::Message* message = request.get();
    std::string name;
    for (const Field field : path) {
      name += (name.empty() ? "" : ".") + field->name() + (field->is_repeated() ? "[0]" : "");
      const google::protobuf::Reflection& reflection = *message->GetReflection();
      if (field->message_type() != nullptr) {
        message = field->is_repeated() ? reflection.AddMessage(message, field)
                                       : reflection.MutableMessage(message, field);
      } else if (field->is_repeated()) {
        reflection.AddString(message, field, "ab\xff");
      } else {
        reflection.SetString(message, field, "ab\xff");
      }
    }
    cases_.push_back({.path = name, .bytes = request->SerializeAsString()});
  }

  std::vector<Case> cases_;
};

TEST_F(HostileClients, AreToldWhichStringIsNoUtf8) {
  google::protobuf::SetLogHandler(nullptr);
  const std::vector<std::pair<std::string, std::vector<BadStrings::Case>>> calls = {
      {"InferenceService/GenerateOnce", BadStrings(v1::GenerateRequest()).cases()},
      {"InferenceService/Score", BadStrings(v1::ScoreRequest()).cases()},
      {"InferenceService/Tokenize", BadStrings(v1::TokenizeRequest()).cases()},
      {"InferenceService/Detokenize", BadStrings(v1::DetokenizeRequest()).cases()},
      {"InferenceService/GetModelInfo", BadStrings(v1::GetModelInfoRequest()).cases()},
      {"InferenceService/GetLoad", BadStrings(v1::GetLoadRequest()).cases()},
      {"ExpertService/GetExpertStats", BadStrings(v1::GetExpertStatsRequest()).cases()},
      {"ExpertService/StreamExpertStats", BadStrings(v1::StreamExpertStatsRequest()).cases()},
      {"ExpertService/ResetExpertWindow", BadStrings(v1::ResetExpertWindowRequest()).cases()},
  };
  int tried = 0;
  for (const auto& [method, cases] : calls) {
    for (const BadStrings::Case& bad : cases) {
      const grpc::Status status =
          CallUnary(server_.channel(), "/switchyard.v1." + method, bad.bytes).status;
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method << bad.path;
      EXPECT_THAT(status.error_message(), HasSubstr("UTF-8")) << method << " " << bad.path;
      EXPECT_THAT(status.error_message(), HasSubstr(bad.path)) << method;
      ++tried;
    }
  }
  EXPECT_GE(tried, 15);
  ExpectGoodClientIsServed(3);
}

class TenThousandIdleClients : public HostileClients {
 protected:
  static ServerOptions Options() {
    ServerOptions options = OnBothPorts();
    options.connections.max_connections = 12'000;
    options.connections.handshake_timeout = std::chrono::minutes(10);
    return options;
  }
  TenThousandIdleClients() : HostileClients(Options()) {}
};

// A process of its own, with files of its own, that opens connections and keeps them. Between fork
// and exit it does nothing but system calls, as a process with threads has to.
class IdleProcess {
 public:
  IdleProcess(int port, int connections) {
    const std::string greeting = Http2Greeting();
    EXPECT_EQ(pipe2(ready_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(end_.data(), O_CLOEXEC), 0);
    process_id_ = fork();
    if (process_id_ == 0) {
      close(end_[1]);
      char opened = 'y';
      for (int i = 0; i < connections; ++i) {
        opened = ConnectAndSend(port, greeting) ? opened : 'n';
      }
      static_cast<void>(!write(ready_[1], &opened, 1));
      // Until the other end is closed.
      static_cast<void>(!read(end_[0], &opened, 1));
      _exit(0);
    }
    close(ready_[1]);
    close(end_[0]);
  }
  ~IdleProcess() {
    close(end_[1]);
    close(ready_[0]);
    waitpid(process_id_, nullptr, 0);
  }
  IdleProcess(const IdleProcess&) = delete;
  IdleProcess& operator=(const IdleProcess&) = delete;

  // Whether all connections are open; waits until they are.
  bool AllAreOpen() const {
    char opened = 'n';
    return read(ready_[0], &opened, 1) == 1 && opened == 'y';
  }

 private:
  std::array<int, 2> ready_ = {};
  std::array<int, 2> end_ = {};
  pid_t process_id_ = -1;
};

TEST_F(TenThousandIdleClients, LeaveRoomForOneThatWorks) {
  constexpr int kClients = 10'000;
  const int64_t files = RaiseFileLimit();
  if (files < kClients + 500) {
    GTEST_SKIP() << "the system lets a process open " << files << " files, too few for " << kClients
                 << " connections (ulimit -Hn)";
  }

  const IdleProcess idle(grpc_port(), kClients);

  ASSERT_TRUE(idle.AllAreOpen());
  ExpectGoodClientIsServed(20);
}

TEST(ConnectionLimit, ClosesWhatIsTooManyAndTakesOthersWhenThereIsRoom) {
  CapturedLog log;
  ServerOptions options = OnBothPorts();
  options.connections.max_connections = 2;
  RunningServer server(options);
  server.SetReady({'a'});
  const int port = server.server().port();
  auto first = std::make_unique<RawConnection>(port);
  const RawConnection second(port);
  ASSERT_TRUE(first->Send(Http2Greeting()));
  ASSERT_TRUE(second.Send(Http2Greeting()));

  EXPECT_EQ(RawConnection(port).ReadToEnd(), "");
  EXPECT_THAT(log.WaitFor("event=connection_refused"), HasSubstr("host=127.0.0.1"));

  first.reset();
  // As soon as gRPC has closed it, too.
  while (!Generate(server.inference(), ShortRequest(1)).status.ok()) {
    std::this_thread::yield();
  }
}

TEST(ConnectionLimit, IsForEachHost) {
  ServerOptions options = OnBothPorts();
  options.connections.max_connections_per_host = 1;
  RunningServer server(options);
  server.SetReady({'a'});
  ASSERT_TRUE(Generate(server.inference(), ShortRequest(1)).status.ok());

  EXPECT_EQ(RawConnection(server.server().port()).ReadToEnd(), "");
  EXPECT_TRUE(Generate(server.inference(), ShortRequest(1)).status.ok());
}

TEST(HandshakeTimeout, EndsAConnectionThatSaysNothing) {
  ServerOptions options = OnBothPorts();
  options.connections.handshake_timeout = std::chrono::milliseconds(100);
  RunningServer server(options);

  const RawConnection silent(server.server().port());
  silent.ReadToEnd();

  SUCCEED() << "the server closed it";
}

TEST(IdleTimeout, EndsAConnectionWithoutCalls) {
  ServerOptions options = OnBothPorts();
  options.connections.idle_timeout = std::chrono::milliseconds(100);
  RunningServer server(options);
  server.SetReady({'a'});

  const RawConnection idle(server.server().port());
  ASSERT_TRUE(idle.Send(Http2Greeting()));
  idle.ReadToEnd();

  EXPECT_TRUE(Generate(server.inference(), ShortRequest(1)).status.ok());
}

TEST(StreamsOfAConnection, WaitInTheClientBeyondTheLimit) {
  ServerOptions options = OnBothPorts();
  options.connections.max_streams_per_connection = 1;
  RunningServer server(options);
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(2));
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  grpc::ClientContext waits;
  waits.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  v1::GetLoadResponse load;
  EXPECT_EQ(
      server.inference().GetLoad(&waits, {}, &load).error_code(),
      grpc::StatusCode::DEADLINE_EXCEEDED
  );
  engine.Release();
  EXPECT_TRUE(ReadStream(*reader).status.ok());
  grpc::ClientContext later;
  EXPECT_TRUE(server.inference().GetLoad(&later, {}, &load).ok());
}

}  // namespace
}  // namespace switchyard
