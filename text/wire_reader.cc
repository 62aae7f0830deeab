#include "text/wire_reader.h"

#include <bit>

namespace switchyard {

float WireReader::Field::Float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(varint));
}

// Seven bits a byte, lowest first; the top bit says that more follow. Bits above the 64th are
// dropped, as protobuf does.
StatusOr<uint64_t> WireReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) {
      return DataLoss("the message ends inside a number");
    }
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return DataLoss("a number takes more than 10 bytes");
}

StatusOr<std::string_view> WireReader::Take(uint64_t bytes) {
  if (bytes > rest_.size()) {
    return DataLoss("a field of ", bytes, " bytes begins ", rest_.size(), " bytes before the end");
  }
  const std::string_view taken = rest_.substr(0, static_cast<size_t>(bytes));
  rest_.remove_prefix(taken.size());
  return taken;
}

StatusOr<uint64_t> WireReader::LittleEndian(size_t bytes) {
  ASSIGN_OR_RETURN(const std::string_view taken, Take(bytes));
  uint64_t value = 0;
  for (size_t i = taken.size(); i > 0; --i) {
    value = value << 8 | static_cast<uint8_t>(taken[i - 1]);
  }
  return value;
}

StatusOr<std::optional<WireReader::Field>> WireReader::Next() {
  if (rest_.empty()) {
    return std::optional<Field>();
  }
  ASSIGN_OR_RETURN(const uint64_t key, Varint());
  Field field;
  field.number = static_cast<uint32_t>(key >> 3);
  if (key >> 3 == 0 || key >> 3 >= uint64_t{1} << 29) {
    return DataLoss("a field has the number ", key >> 3);
  }
  // The low bits say how the value is stored: 0 varint, 1 eight bytes, 2 length and bytes, 5 four
  // bytes. Types 3 and 4 are groups, which no schema has used since proto1.
  switch (key & 7) {
    case 0: {
      ASSIGN_OR_RETURN(field.varint, Varint());
      return std::optional<Field>(field);
    }
    case 1: {
      ASSIGN_OR_RETURN(field.varint, LittleEndian(8));
      return std::optional<Field>(field);
    }
    case 2: {
      ASSIGN_OR_RETURN(const uint64_t length, Varint());
      ASSIGN_OR_RETURN(field.bytes, Take(length));
      field.is_bytes = true;
      return std::optional<Field>(field);
    }
    case 5: {
      ASSIGN_OR_RETURN(field.varint, LittleEndian(4));
      return std::optional<Field>(field);
    }
    default:
      return DataLoss("field ", field.number, " has the unknown wire type ", key & 7);
  }
}

}  // namespace switchyard
