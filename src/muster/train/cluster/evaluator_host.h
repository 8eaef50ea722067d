// EvaluatorHost: connects the evaluator to a training by parameter servers. The chief hosts a
// membership (membership/host.h) of the evaluator and itself on its own address. (In a training by
// all-reduce all tasks are members of one.)
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/train/cluster/task_context.h"

namespace muster::train {

struct EvaluatorHostSpec {
  // The chief's context. Leave waits rendezvous_seconds for an evaluator that is away; if the chief
  // is leaving, the evaluator is not told that training is over.
  TaskContext context = {};
  net::transport::Address address = {};
};

// Thread-safe. The destructor closes all connections.
class EvaluatorHost {
 public:
  virtual ~EvaluatorHost() = default;
  // Call when the last checkpoint is written. Returns when the evaluator has evaluated it and has
  // left, when stopped, or, with a warning, when the evaluator was away for rendezvous_seconds.
  // CANCELLED: this task was told to end before the evaluator was done.
  virtual absl::Status Leave() = 0;
};

// Turns a DEADLINE_EXCEEDED in `evaluated` into OK and a warning to `note`: the training is
// complete and saved even if the evaluator did not arrive. Returns any other status unchanged.
absl::Status TrainedWithoutEvaluator(const absl::Status& evaluated,
                                     const std::function<void(const std::string& text)>& note);

// ALREADY_EXISTS if the address is taken. `clock` must outlive the result.
absl::StatusOr<std::unique_ptr<EvaluatorHost>> HostEvaluator(EvaluatorHostSpec spec,
                                                             const net::Token& key,
                                                             const Clock& clock);

}  // namespace muster::train
