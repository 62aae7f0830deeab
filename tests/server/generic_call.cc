#include "tests/server/generic_call.h"

#include <vector>

namespace switchyard {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (buffer.Valid() && buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return bytes;
}

}  // namespace

GenericAnswer CallUnary(
    const std::shared_ptr<grpc::Channel>& channel,
    const std::string& method,
    const std::string& request
) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, ToBuffer(request), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  GenericAnswer answer;
  call->Finish(&response, &answer.status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  answer.bytes = ToBytes(response);
  return answer;
}

GenericStream::GenericStream(
    const std::shared_ptr<grpc::Channel>& channel,
    const std::string& method,
    const std::string& request
)
    : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
  call_->StartCall(nullptr);
  Wait();
  call_->WriteLast(ToBuffer(request), grpc::WriteOptions(), nullptr);
  Wait();
}

GenericStream::~GenericStream() {
  context_.TryCancel();
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Wait();
  queue_.Shutdown();
}

std::string GenericStream::Read() {
  grpc::ByteBuffer response;
  call_->Read(&response, nullptr);
  return Wait() ? ToBytes(response) : std::string();
}

bool GenericStream::Wait() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

std::string HealthRequest(const std::string& service) {
  return service.empty() ? std::string()
                         : std::string("\x0A") + static_cast<char>(service.size()) + service;
}

}  // namespace switchyard
