#include "server/generation/message_bytes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/validation/field_violation.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// Our messages nest 3 deep; the limit keeps a hostile one from exhausting the stack.
constexpr int kMaxDepth = 16;

struct BadString {
  std::string field;
  size_t byte_offset = 0;
};

std::optional<BadString> FindBadString(
    const std::string& bytes, const Descriptor& type, const std::string& path, int depth
);

std::optional<BadString> BadStringIn(
    const std::string& value, const FieldDescriptor& field, const std::string& path, int depth
) {
  if (field.type() == FieldDescriptor::TYPE_STRING) {
    const std::optional<size_t> offset = FindInvalidUtf8(value);
    return offset ? std::optional<BadString>({.field = path, .byte_offset = *offset})
                  : std::nullopt;
  }
  if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
    return FindBadString(value, *field.message_type(), path + ".", depth + 1);
  }
  return std::nullopt;
}

// Reads the bytes with no types first, which always works for well-formed bytes, then looks at each
// string by the type.
std::optional<BadString> FindBadString(
    const std::string& bytes, const Descriptor& type, const std::string& path, int depth
) {
  UnknownFieldSet fields;
  if (depth > kMaxDepth || !fields.ParseFromString(bytes)) {
    return std::nullopt;
  }
  std::map<int, int> occurrences;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    const FieldDescriptor* field = type.FindFieldByNumber(value.number());
    if (field == nullptr || value.type() != UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    std::string field_path = path + field->name();
    if (field->is_repeated()) {
      field_path += Concat("[", occurrences[value.number()]++, "]");
    }
    std::optional<BadString> bad = BadStringIn(value.length_delimited(), *field, field_path, depth);
    if (bad) {
      return bad;
    }
  }
  return std::nullopt;
}

std::string Flatten(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string flat;
  if (!bytes.Dump(&slices).ok()) {
    return flat;
  }
  for (const grpc::Slice& slice : slices) {
    flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return flat;
}

}  // namespace

Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  grpc::ByteBuffer consumed = bytes;  // shares the memory; reading empties it
  if (grpc::SerializationTraits<google::protobuf::Message>::Deserialize(&consumed, &message).ok()) {
    return OkStatus();
  }
  const Descriptor& type = *message.GetDescriptor();
  const std::optional<BadString> bad = FindBadString(Flatten(bytes), type, "", 0);
  if (bad) {
    return FieldViolation(
        bad->field,
        Concat("is not valid UTF-8 at byte ", bad->byte_offset, "; strings on the wire are UTF-8")
    );
  }
  return InvalidArgument(
      "the request is no ",
      type.full_name(),
      ": its bytes cannot be parsed; is the client built ",
      "from the same .proto files?"
  );
}

Status SerializeMessage(const google::protobuf::Message& message, grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer written;  // gRPC wants an empty one, and `bytes` may hold the message before
  bool owns_buffer = false;
  const grpc::Status status = grpc::SerializationTraits<google::protobuf::Message>::Serialize(
      message, &written, &owns_buffer
  );
  bytes.Swap(&written);
  return status.ok() ? OkStatus() : Internal("cannot write a ", message.GetTypeName());
}

}  // namespace switchyard
