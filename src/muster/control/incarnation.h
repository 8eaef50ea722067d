// The mark of one incarnation of a task on its machine: a file in the job's folder that the agent
// keeps locked while it runs. The lock shows for certain whether the agent runs, also after a kill
// -9 and a restart of everything else. A mark is never removed: an incarnation that has one is
// never started again.
//
// Files "agents/worker-0.3" (the lock; holds the agent's pid), "agents/worker-0.3.end" (how the
// task ended, as JSON) and "agents/worker-0.3.step" (its step number, if the task writes it). They
// must be on a file system of one machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"
#include "muster/job/job_status.h"

namespace muster::control {

struct IncarnationId {
  job::TaskId task = {};
  int64_t incarnation = 0;
  friend bool operator==(const IncarnationId&, const IncarnationId&) = default;
  friend bool operator<(const IncarnationId& a, const IncarnationId& b) {
    return a.task == b.task ? a.incarnation < b.incarnation : a.task < b.task;
  }
};

// Holds the mark until this object or the process ends. The object has one owner thread. A child
// process does not hold the mark, unless it was forked without exec.
class IncarnationClaim {
 public:
  // Takes the mark. Returns nothing if there is a mark already; this agent must then not run. Of
  // any number of processes that call it at once, one gets the mark; one process must not call it
  // for the same incarnation from two threads at once. NOT_FOUND if the folder has no agents/;
  // otherwise the error of the failed system call (ErrnoStatus). The mark survives the end of every
  // process. It is not synced: a crash of the machine, which also ends the agent, may lose it.
  static absl::StatusOr<std::optional<IncarnationClaim>> Take(const std::string& folder,
                                                              const IncarnationId& id);
  ~IncarnationClaim();
  IncarnationClaim(IncarnationClaim&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  IncarnationClaim& operator=(IncarnationClaim&&) = delete;

 private:
  explicit IncarnationClaim(int fd) : fd_(fd) {}
  int fd_;
};

// All functions below may be called from any thread and any process of the machine at once.

struct IncarnationMark {
  // kNone: there is no mark. kHeld: the agent runs. kEnded: the agent has ended, or never ran
  // (ForbidIncarnation).
  enum class State { kNone, kHeld, kEnded } state = State::kNone;
  int pid = 0;  // kHeld: the agent's process; 0 if the file has no readable number
};
// Finds the state of the mark without disturbing its holder. A result other than kEnded may be
// outdated when it is returned; kEnded is final. An incarnation without a mark is kNone and no
// error, also if the folder does not exist. Errors are those of opening the file (ErrnoStatus).
absl::StatusOr<IncarnationMark> LookAtIncarnation(const std::string& folder,
                                                  const IncarnationId& id);
// Makes a mark that nobody holds, unless there is a mark already, so that the incarnation is never
// started. NOT_FOUND if the folder has no agents/; otherwise the error of the failed system call.
absl::Status ForbidIncarnation(const std::string& folder, const IncarnationId& id);
// Lists all incarnations that have a mark, in no particular order. NOT_FOUND if the folder has no
// agents/.
absl::StatusOr<std::vector<IncarnationId>> ListIncarnations(const std::string& folder);

// Writes how the task ended. The file appears as a whole and is durable when this returns OK
// (io::WriteFileAtomically, whose errors it has); a second call replaces it. It is the agent's to
// call, while it holds the mark.
absl::Status WriteEnd(const std::string& folder, const IncarnationId& id, const job::TaskEnd& end);
// Reads what WriteEnd wrote. NOT_FOUND: the agent wrote none. INVALID_ARGUMENT: the file has
// another form.
absl::StatusOr<job::TaskEnd> ReadEnd(const std::string& folder, const IncarnationId& id);

// The path at which a task may write its step number; the task has it in MUSTER_STEP_FILE.
std::string StepPath(const std::string& folder, const IncarnationId& id);

// Every process of an incarnation has this variable in its environment, so that leftover processes
// can be found: MUSTER_MARK=/jobs/j:worker-0.3.
constexpr char kMarkVariable[] = "MUSTER_MARK";
std::string GetMark(const std::string& folder, const IncarnationId& id);
// The name of the process::MemoryLimit that its agent makes: "worker-0-3".
std::string GetMemoryGroup(const IncarnationId& id);

}  // namespace muster::control
