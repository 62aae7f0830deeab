#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The one place that names absl::Status. Errors of the input or of the environment travel as
// Status; our own bugs are CHECKs (base/check.h). A message says what, which value, which limit,
// and what to do:
//   return InvalidArgument("prompt has ", tokens, " tokens; this model takes ", limit, "; shorten
//   it");

namespace switchyard {

using absl::OkStatus;
using absl::Status;
using absl::StatusCode;
using absl::StatusOr;

// Joins anything that streams. Debian's abseil has a string_view of its own, so absl::StrCat does
// not take std::string_view; this does.
template <typename... Parts>
std::string Concat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return std::move(stream).str();
}

template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return Status(StatusCode::kInvalidArgument, Concat(parts...));
}
template <typename... Parts>
Status NotFound(const Parts&... parts) {
  return Status(StatusCode::kNotFound, Concat(parts...));
}
template <typename... Parts>
Status ResourceExhausted(const Parts&... parts) {
  return Status(StatusCode::kResourceExhausted, Concat(parts...));
}
template <typename... Parts>
Status FailedPrecondition(const Parts&... parts) {
  return Status(StatusCode::kFailedPrecondition, Concat(parts...));
}
template <typename... Parts>
Status Unavailable(const Parts&... parts) {
  return Status(StatusCode::kUnavailable, Concat(parts...));
}
template <typename... Parts>
Status Unimplemented(const Parts&... parts) {
  return Status(StatusCode::kUnimplemented, Concat(parts...));
}
template <typename... Parts>
Status Internal(const Parts&... parts) {
  return Status(StatusCode::kInternal, Concat(parts...));
}
template <typename... Parts>
Status DataLoss(const Parts&... parts) {
  return Status(StatusCode::kDataLoss, Concat(parts...));
}

// The same status with "context: " before its message, for the layer that knows more.
Status WithContext(const Status& status, const std::string& context);

// The message as a std::string (absl's string_view does not convert by itself).
std::string MessageOf(const Status& status);

// "RESOURCE_EXHAUSTED"; the number of a code that has no name.
std::string NameOf(StatusCode code);

}  // namespace switchyard

// The arguments are declarations and names, which no parentheses may surround.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define SWITCHYARD_CONCAT_INNER(a, b) a##b
#define SWITCHYARD_CONCAT(a, b) SWITCHYARD_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                                             \
  do {                                                                          \
    if (::switchyard::Status status_macro = (expression); !status_macro.ok()) { \
      return status_macro;                                                      \
    }                                                                           \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_INNER(SWITCHYARD_CONCAT(status_or_, __LINE__), declaration, expression)

#define ASSIGN_OR_RETURN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                   \
  if (!temporary.ok()) {                                           \
    return temporary.status();                                     \
  }                                                                \
  declaration = *std::move(temporary)
// NOLINTEND(bugprone-macro-parentheses)
