// EvaluatorHost: where the evaluator of a training by parameter servers hears of it: the membership
// (membership/host.h) of a chief and an evaluator, hosted by the chief on its own address, as it is
// where all tasks are members.
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
  double rendezvous_seconds = 300;          // without an evaluator at the end for longer: it fails
  const std::atomic<bool>* stop = nullptr;  // true gives waits up; may be null
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// Thread-safe. Closes all connections when it ends.
class EvaluatorHost {
 public:
  virtual ~EvaluatorHost() = default;
  // The last checkpoint is written: returns when the evaluator has evaluated it and has left, or
  // when stopped. DEADLINE_EXCEEDED: there was none.
  virtual absl::Status Leave() = 0;
};

// ALREADY_EXISTS where the address is taken. `clock` must outlive it.
absl::StatusOr<std::unique_ptr<EvaluatorHost>> HostEvaluator(EvaluatorHostSpec spec,
                                                             const net::Token& key,
                                                             const Clock& clock);

}  // namespace muster::train
