#include "muster/base/status.h"

#include <cerrno>
#include <cstring>

namespace muster {

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view kind, const absl::Cord& payload) {
    annotated.SetPayload(kind, payload);
  });
  return annotated;
}

absl::Status ErrnoStatus(int error_number, std::string_view what) {
  char buffer[128];
  const std::string message = StrCat(what, ": ", strerror_r(error_number, buffer, sizeof buffer));
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace muster
