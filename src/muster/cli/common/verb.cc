#include "muster/cli/common/verb.h"

namespace muster::cli {

void FailUnlessOk(const absl::Status& status) {
  if (!status.ok()) throw VerbFailed{.status = status};
}

void RefuseUnlessOk(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) {
    throw VerbFailed{.status = status, .exit_code = kWrongUse};
  }
  FailUnlessOk(status);
}

const char* Version() { return MUSTER_VERSION; }

}  // namespace muster::cli
