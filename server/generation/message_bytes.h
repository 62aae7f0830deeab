#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "base/status.h"

// The services take and give raw bytes, because gRPC's own parsing answers a request it cannot
// read, such as a string that is no UTF-8, with UNIMPLEMENTED and no message.

namespace switchyard {

// INVALID_ARGUMENT when the bytes are no such message; names the string field that is not valid
// UTF-8 if that is why.
Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);

// INTERNAL when the message cannot be written, which is over 2 GiB.
Status SerializeMessage(const google::protobuf::Message& message, grpc::ByteBuffer& bytes);

}  // namespace switchyard
