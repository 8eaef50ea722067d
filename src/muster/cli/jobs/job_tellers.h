// What people are told while a job runs, once for each event; each is told from descriptions of the
// job (control::DescribeJob).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "muster/control/job_place.h"
#include "muster/formats/json_fields.h"

namespace muster::cli {

using Say = std::function<void(const std::string& text)>;

// Tasks that were given up or failed, and checkpoints that vanished, while the job continues. What
// ended the job is left to its end (FailureText, JobLine).
class FailureTeller {
 public:
  explicit FailureTeller(Say say) : say_(std::move(say)) {}
  void Tell(const formats::Json& job);

 private:
  const Say say_;
  std::set<int64_t> told_, given_up_;
  std::map<std::string, std::string> last_;  // by task: how it failed last
  size_t losses_told_ = 0;
};

// That the job waits for its evaluator.
class FinishTeller {
 public:
  explicit FinishTeller(Say say) : say_(std::move(say)) {}
  void Tell(const formats::Json& job);

 private:
  const Say say_;
  bool told_ = false;
};

// Why tasks do not start, why nobody answers for the job, and what its settings do not do.
class ProblemTeller {
 public:
  explicit ProblemTeller(Say say) : say_(std::move(say)) {}
  void Tell(const formats::Json& job);

 private:
  const Say say_;
  // By task, since it had no problem; "": of the job. A kubelet says in turns that an image cannot
  // be pulled, and that it waits before it tries again.
  std::map<std::string, std::set<std::string>> told_;
};

// Says why nobody does what the job was told to do just now. Waits some seconds for somebody to do
// it, where the place says that nobody has yet.
void TellUnheard(control::JobPlace& place, const Say& say);

}  // namespace muster::cli
