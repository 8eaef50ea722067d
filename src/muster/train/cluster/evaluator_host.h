// EvaluatorHost: connects the evaluator of a training by parameter servers to the training. It is a
// membership (membership/host.h) of the chief and the evaluator alone, hosted by the chief on its
// own address, as in a training by all-reduce, where all tasks are members.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/job/job_spec.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/tls.h"

namespace muster::train {

struct EvaluatorHostSpec {
  std::string job = {};
  job::TaskId self = {};  // the chief
  int64_t incarnation = 0;
  std::string agreement = {};
  net::transport::Address address = {};
  net::transport::Protection protection = {};
  double lease_seconds = 10;
  double rendezvous_seconds = 300;          // how long Leave waits for an evaluator that is away
  const std::atomic<bool>* stop = nullptr;  // true ends waits; may be null
  // True, with `stop`: this task alone ends; the evaluator is not told that training is over.
  const std::atomic<bool>* leaving = nullptr;
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// Thread-safe. The destructor closes all connections.
class EvaluatorHost {
 public:
  virtual ~EvaluatorHost() = default;
  // Call when the last checkpoint is written. Returns when the evaluator has evaluated it and has
  // left, when stopped, or, with a warning, when the evaluator was away for rendezvous_seconds.
  // CANCELLED: this task was told to end before that.
  virtual absl::Status Leave() = 0;
};

// Turns a DEADLINE_EXCEEDED in `evaluated` into OK and a warning to `note`: all is trained and
// saved even if the evaluator did not come. Returns any other status unchanged.
absl::Status TrainedWithoutEvaluator(const absl::Status& evaluated,
                                     const std::function<void(const std::string& text)>& note);

// ALREADY_EXISTS if the address is taken. `clock` must outlive the result.
absl::StatusOr<std::unique_ptr<EvaluatorHost>> HostEvaluator(EvaluatorHostSpec spec,
                                                             const net::Token& key,
                                                             const Clock& clock);

}  // namespace muster::train
