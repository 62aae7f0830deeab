#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>

namespace switchyard {

// Calls of services whose .proto files Debian does not install: messages are written and read as
// bytes.
struct GenericAnswer {
  grpc::Status status;
  std::string bytes;
};
GenericAnswer CallUnary(
    const std::shared_ptr<grpc::Channel>& channel,
    const std::string& method,
    const std::string& request
);

// One stream, used by one thread. Sends one message at the start.
class GenericStream {
 public:
  GenericStream(
      const std::shared_ptr<grpc::Channel>& channel,
      const std::string& method,
      const std::string& request
  );
  // Cancels.
  ~GenericStream();
  GenericStream(const GenericStream&) = delete;
  GenericStream& operator=(const GenericStream&) = delete;

  // Waits for the next message; empty when the stream is over.
  std::string Read();

 private:
  bool Wait();

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// grpc.health.v1: the request for a service, and the answers as bytes.
std::string HealthRequest(const std::string& service);
inline const std::string kServing = "\x08\x01";
inline const std::string kNotServing = "\x08\x02";

}  // namespace switchyard
