#include "muster/train/loop/strategy.h"

#include <utility>

namespace muster::train {

absl::Status CheckReplicas(const Session& session, int replicas) {
  const size_t before = session.data.positions.size();
  if (session.data.shards > 0) replicas = session.data.shards;
  if (before == 0 || std::cmp_equal(before, replicas)) return absl::OkStatus();
  if (session.data.shards > 0) {
    return absl::FailedPreconditionError(
        StrCat(session.config.model_dir, " was trained with its data dealt into ", before,
               " shards; for as many replicas as now there are to be ", replicas,
               ": give --workers as before, or begin the data anew (--fresh-data)"));
  }
  return absl::FailedPreconditionError(StrCat(
      session.config.model_dir, " was trained with its data dealt to ", before,
      " replicas or, by an elastic training (--workers MIN:MAX), into as many shards; now "
      "there are ",
      replicas, " replicas: give --workers as before, or begin the data anew (--fresh-data)"));
}

}  // namespace muster::train
