#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <exception>

#include "base/status.h"
#include "server/call/grpc_status.h"
#include "server/call/incoming_call.h"
#include "server/generation/message_bytes.h"

namespace switchyard {

// Parses the request, asks `answer` (Status(const Request&, Response&)), and writes the response.
// What a library throws below becomes INTERNAL; gRPC itself would say UNKNOWN.
template <typename Request, typename Response, typename Answer>
Status AnswerBytes(const grpc::ByteBuffer& in, grpc::ByteBuffer& out, const Answer& answer) {
  try {
    Request request;
    RETURN_IF_ERROR(ParseMessage(in, request));
    Response response;
    RETURN_IF_ERROR(answer(request, response));
    return SerializeMessage(response, out);
  } catch (const std::exception& error) {
    return Internal("answering a ", Request::descriptor()->full_name(), " failed: ", error.what());
  }
}

// What gRPC hands over for one RPC; all of it outlives the RPC.
struct UnaryCall {
  const char* method;  // "Tokenize"
  grpc::CallbackServerContext& context;
  const grpc::ByteBuffer& request;
  grpc::ByteBuffer& response;
};

// As AnswerBytes, and tells those who want to hear of it when the call is refused.
template <typename Request, typename Response, typename Answer>
Status AnswerCall(ServingState& state, const UnaryCall& unary, const Answer& answer) {
  IncomingCall call(state, unary.method, unary.context);
  Status status = call.Admit();
  if (status.ok()) {
    status = AnswerBytes<Request, Response>(unary.request, unary.response, answer);
  } else {
    state.counters().CountRefusal(status.code());
  }
  if (!status.ok()) {
    call.Refuse(status);
  }
  return status;
}

}  // namespace switchyard
