#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace switchyard {

// Walks over the fields of one serialized protocol buffer message without knowing its schema.
// Borrows the bytes.
class WireReader {
 public:
  struct Field {
    uint32_t number = 0;
    uint64_t varint = 0;     // wire type 0, or the bits of wire types 1 and 5
    std::string_view bytes;  // wire type 2: a string or a message
    bool is_bytes = false;

    float Float() const;  // wire type 5
  };

  explicit WireReader(std::string_view message) : rest_(message) {}

  // The next field; nothing at the end. DATA_LOSS when the bytes are no message.
  StatusOr<std::optional<Field>> Next();

 private:
  StatusOr<uint64_t> Varint();
  StatusOr<std::string_view> Take(uint64_t bytes);
  StatusOr<uint64_t> LittleEndian(size_t bytes);

  std::string_view rest_;
};

}  // namespace switchyard
