#include "muster/train/strategy.h"

#include <utility>

namespace muster::train {

absl::Status CheckReplicas(const Session& session, int replicas) {
  const size_t before = session.positions.size();
  if (before == 0 || std::cmp_equal(before, replicas)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(session.config.model_dir, " was trained by ", before,
             " replicas, to whom its data is dealt; now there are ", replicas,
             ": start as many as before, or begin the data anew (--fresh-data)"));
}

}  // namespace muster::train
