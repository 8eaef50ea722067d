#include "muster/cli/common/verb.h"

namespace muster::cli {

void FailUnlessOk(const absl::Status& status) {
  if (!status.ok()) throw VerbFailed{.status = status};
}

const char* Version() { return MUSTER_VERSION; }

}  // namespace muster::cli
