// RefusalLog: decides which refused connections to log. Strangers, scanners and tasks with a wrong
// key retry continually and must not fill a task's log.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "muster/base/mutex.h"
#include "muster/base/status.h"

namespace muster::net::transport {

// Thread-safe. Its memory is bounded.
class RefusalLog {
 public:
  // Counts a refusal of a peer ("tcp://10.0.0.7:41234", whose port is ignored, since it differs
  // each time). Returns what to log: `why` itself for the first five of one host and one code, then
  // for the 10th, 100th, 1,000th and so on with their number, else nothing.
  std::optional<absl::Status> Count(const std::string& peer, const absl::Status& why);

 private:
  using Kind = std::pair<std::string, absl::StatusCode>;
  Mutex mutex_;
  std::map<Kind, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::net::transport
