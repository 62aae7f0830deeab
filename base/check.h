#pragma once

#include <sstream>
#include <string>

// CHECK is for our own bugs, never for anything that a client or a file can cause: it stops the
// process.
//   CHECK(rows > 0) << "rows=" << rows;

namespace switchyard {

// Collects the message of a failed CHECK and stops the process when it goes out of scope.
class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();

  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Lets the macro be one expression of type void whatever is streamed into it.
struct CheckVoidify {
  void operator&(std::ostream&) const {}
};

}  // namespace switchyard

// The stream has to stay the last thing, for << to go on from, so the whole has no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define CHECK(condition)                       \
  (condition) ? (void)0                        \
              : ::switchyard::CheckVoidify() & \
                    ::switchyard::CheckFailure(#condition, __FILE__, __LINE__).stream()
// NOLINTEND(bugprone-macro-parentheses)
