#include "muster/train/loop/strategy.h"

#include <utility>

namespace muster::train {

absl::Status CheckReplicas(const Session& session, int replicas) {
  const size_t before = session.data.positions.size();
  if (session.data.shards > 0) replicas = session.data.shards;
  if (before == 0 || std::cmp_equal(before, replicas)) return absl::OkStatus();
  if (session.data.shards > 0) {
    return absl::FailedPreconditionError(StrCat(
        session.config.model_dir, " was trained with its data divided into ", before,
        " shards, but the present number of replicas needs ", replicas,
        ": give --workers (by hand: the tasks of TF_CONFIG, and --min-workers) as before, or "
        "--fresh-data to begin at the start of the data"));
  }
  return absl::FailedPreconditionError(
      StrCat(session.config.model_dir, " was trained with its data divided among ", before,
             " replicas or, by an elastic training (--workers MIN:MAX), into as many shards; the "
             "number of replicas is now ",
             replicas,
             ": give --workers (by hand: the tasks of TF_CONFIG, and --min-workers) as before, or "
             "--fresh-data to begin at the start of the data"));
}

}  // namespace muster::train
