#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "tests/server/hostile/hostile_clients.h"
#include "tests/server/hostile/raw_connection.h"

// What HTTP/2 lets a client do to the other side, within its rules.

namespace switchyard {
namespace {

using ::testing::HasSubstr;

const std::string kPing = Http2FrameOf(kHttp2Ping, 0, 0, "12345678");
constexpr char kGenerate[] = "/switchyard.v1.InferenceService/Generate";
constexpr char kGenerateOnce[] = "/switchyard.v1.InferenceService/GenerateOnce";

std::string Times(int times, const std::string& text) {
  std::string repeated;
  for (int i = 0; i < times; ++i) {
    repeated += text;
  }
  return repeated;
}

std::optional<Http2Frame> ReadFrameOfType(const RawConnection& connection, uint8_t type) {
  std::optional<Http2Frame> frame = connection.ReadFrame();
  while (frame && frame->type != type) {
    frame = connection.ReadFrame();
  }
  return frame;
}

// To a ping of the client's; the server pings, too, to measure the connection.
std::optional<Http2Frame> ReadPingAnswer(const RawConnection& connection) {
  std::optional<Http2Frame> frame = ReadFrameOfType(connection, kHttp2Ping);
  while (frame && (frame->flags & kHttp2Ack) == 0) {
    frame = ReadFrameOfType(connection, kHttp2Ping);
  }
  return frame;
}

TEST_F(HostileClients, ThatPingTooOftenAreToldSoAndCutOff) {
  const RawConnection pinging(grpc_port());
  // Three of four come sooner than half a second after the one before.
  ASSERT_TRUE(pinging.Send(Http2Greeting() + Times(4, kPing)));

  const std::optional<Http2Frame> farewell = ReadFrameOfType(pinging, kHttp2GoAway);

  ASSERT_TRUE(farewell.has_value());
  // The last stream, none; ENHANCE_YOUR_CALM; the reason.
  EXPECT_EQ(farewell->payload.substr(4), std::string("\0\0\0\x0b", 4) + "too_many_pings");
  pinging.ReadToEnd();
  ExpectGoodClientIsServed(5);
}

TEST_F(HostileClients, ThatFloodWithPingsHoldUpNobody) {
  for (int i = 0; i < 50; ++i) {
    const RawConnection pinging(grpc_port());
    // May find the connection closed before all is sent.
    pinging.Send(Http2Greeting() + Times(10'000, kPing));
    ExpectGoodClientIsServed(1);
    pinging.ReadToEnd();
  }
  ExpectGoodClientIsServed(5);
}

TEST(PoliteClient, MayPingForAsLongAsItsStreamIsOpen) {
  constexpr std::chrono::milliseconds kInterval{5};
  ServerOptions options = OnBothPorts();
  options.connections.min_ping_interval = kInterval;
  RunningServer server(options);
  FakeEngine& engine = server.SetReady({'a'});
  engine.HoldAfter(1);
  const RawConnection polite(server.server().port());
  ASSERT_TRUE(polite.Send(
      Http2Greeting() + Http2CallHead(1, kGenerate) +
      Http2Message(1, ShortRequest(2).SerializeAsString(), true)
  ));
  ASSERT_TRUE(ReadFrameOfType(polite, kHttp2Data).has_value());

  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(polite.Send(kPing));
    const std::optional<Http2Frame> answer = ReadPingAnswer(polite);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->payload, "12345678");
    // The server counts from when it read the ping, which was before its answer came.
    const Clock::time_point next = Clock::now() + 2 * kInterval;
    while (Clock::now() < next) {
      grpc::ClientContext context;
      v1::GetLoadResponse load;
      EXPECT_TRUE(server.inference().GetLoad(&context, {}, &load).ok());
    }
  }
  engine.Release();
  std::optional<Http2Frame> last = ReadFrameOfType(polite, kHttp2Headers);

  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->flags & kHttp2EndStream, kHttp2EndStream);
  EXPECT_THAT(last->payload, HasSubstr("grpc-status"));
}

// Beside the good client, which is another host.
class HostileHost : public HostileClients {
 protected:
  static ServerOptions Options() {
    ServerOptions options = OnBothPorts();
    // More than the good client makes in all: those of its calls that are over count until the
    // server, which is busy, has cleared them away.
    options.serving.max_streams_per_host = 400;
    return options;
  }
  HostileHost() : HostileClients(Options()) {}
};

TEST_F(HostileHost, ThatResetsWhatItBeginsHoldsUpNobody) {
  const RawConnection resetting(grpc_port(), "127.0.0.2");
  ASSERT_TRUE(resetting.Send(Http2Greeting()));
  const std::string request = ShortRequest(30).SerializeAsString();

  // A call that is reset no longer counts against what the connection may have open, so they come
  // in any number.
  uint32_t stream = 1;
  for (int batch = 0; batch < 50; ++batch) {
    std::string calls;
    for (int i = 0; i < 100; ++i, stream += 2) {
      calls += Http2CallHead(stream, kGenerateOnce) + Http2Message(stream, request, true) +
               Http2FrameOf(kHttp2ResetStream, 0, stream, std::string("\0\0\0\x08", 4));
    }
    ASSERT_TRUE(resetting.Send(calls));
    resetting.Drain();
    ExpectGoodClientIsServed(1);
  }
  ExpectGoodClientIsServed(5);
}

TEST_F(HostileClients, ThatNeverEndTheirHeadersHoldUpNobody) {
  const RawConnection endless(grpc_port());
  // A text of 2^28 bytes is announced. gRPC keeps what came of it and reads it anew with each
  // frame; docs/security.md says what to do about it.
  const std::string announced = std::string("\0\x01x\x7f\x81\xff\xff\x7f", 8);
  ASSERT_TRUE(endless.Send(Http2Greeting() + Http2FrameOf(kHttp2Headers, 0, 1, announced)));
  const std::string more = Http2FrameOf(kHttp2Continuation, 0, 1, std::string(16'384, 'x'));

  for (int i = 0; i < 200 && endless.Send(more); ++i) {
    endless.Drain();
    ExpectGoodClientIsServed(1);
  }
  ExpectGoodClientIsServed(5);
}

TEST_F(HostileClients, ThatSendHeaderAfterHeaderHoldUpNobody) {
  const RawConnection endless(grpc_port());
  const std::string header = std::string("\0\x01x\x0a", 4) + "0123456789";
  ASSERT_TRUE(endless.Send(Http2Greeting() + Http2FrameOf(kHttp2Headers, 0, 1, header)));
  const std::string more = Http2FrameOf(kHttp2Continuation, 0, 1, Times(1000, header));

  for (int i = 0; i < 1000 && endless.Send(more); ++i) {
    endless.Drain();
  }
  ExpectGoodClientIsServed(5);
}

TEST_F(HostileClients, ThatChangeTheirSettingsAllTheTimeHoldUpNobody) {
  const RawConnection changing(grpc_port());
  ASSERT_TRUE(changing.Send(Http2Greeting()));
  // The initial window, 65535, again and again.
  const std::string settings =
      Times(1000, Http2FrameOf(kHttp2Settings, 0, 0, std::string("\0\x04\0\0\xff\xff", 6)));

  for (int i = 0; i < 100 && changing.Send(settings); ++i) {
    changing.Drain();
    ExpectGoodClientIsServed(1);
  }
  ExpectGoodClientIsServed(5);
}

TEST_F(HostileClients, ThatSendEmptyFramesHoldUpNobody) {
  const RawConnection empty(grpc_port());
  ASSERT_TRUE(empty.Send(Http2Greeting() + Http2CallHead(1, kGenerateOnce)));
  const std::string frames = Times(1000, Http2FrameOf(kHttp2Data, 0, 1, ""));

  for (int i = 0; i < 100 && empty.Send(frames); ++i) {
    empty.Drain();
    ExpectGoodClientIsServed(1);
  }
  ExpectGoodClientIsServed(5);
}

}  // namespace
}  // namespace switchyard
