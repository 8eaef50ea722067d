// Errors: absl::Status everywhere, with two macros and one helper.
//
// A code is chosen by what the caller does next:
//   INVALID_ARGUMENT     the user must change something (spec, flag, value)
//   NOT_FOUND            a named thing does not exist
//   DATA_LOSS            a file is broken
//   FAILED_PRECONDITION  something must be set up first
//   RESOURCE_EXHAUSTED   disk or memory is full
//   UNAVAILABLE          try again; ABORTED: rejoin; CANCELLED: somebody asked to stop
// A message says what was being done, to what (file and offset, key and value), what went wrong
// and what to do. An outer layer adds its context once, in front, with Annotate().
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "muster/base/strings.h"

namespace muster {

// Puts "context: " before the message; the code and payloads stay. An OK status stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

// The status of the last failed system call: "what: strerror", coded by errno (ENOENT is
// NOT_FOUND, ENOSPC and EDQUOT are RESOURCE_EXHAUSTED, EACCES, EPERM and EROFS are
// PERMISSION_DENIED, EEXIST is ALREADY_EXISTS, all others INTERNAL).
absl::Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

#define MUSTER_RETURN_IF_ERROR(expression)                                          \
  do {                                                                              \
    if (::absl::Status status_macro_value = (expression); !status_macro_value.ok()) \
      return status_macro_value;                                                    \
  } while (false)

// MUSTER_ASSIGN_OR_RETURN(auto value, Expression());
#define MUSTER_ASSIGN_OR_RETURN(declaration, expression) \
  MUSTER_ASSIGN_OR_RETURN_IMPL(MUSTER_CONCAT(status_or_, __LINE__), declaration, expression)
#define MUSTER_ASSIGN_OR_RETURN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                                         \
  if (!temporary.ok()) return std::move(temporary).status();             \
  declaration = *std::move(temporary)
