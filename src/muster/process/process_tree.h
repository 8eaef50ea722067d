// All processes that a task started, and their end: none is left running, no zombie remains.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "muster/process/child.h"
#include "muster/process/proc.h"

namespace muster::process {

struct StopOptions {
  double grace_seconds = 10;      // between SIGTERM and SIGKILL; 0: SIGKILL at once
  double kill_wait_seconds = 10;  // for the kernel to end killed processes
};

struct StopReport {
  int told = 0;    // processes that got SIGTERM
  int killed = 0;  // processes that had to be killed
};

// The total resource usage of the processes of a tree.
struct TreeUsage {
  int processes = 0, threads = 0;  // running now
  // Of running processes, of those they waited for and of those that this process reaped.
  double cpu_seconds = 0;
  int64_t pss_bytes = 0;  // of the readable ones; 0 unless requested
};

// The tree of processes below this one. While it exists this process is a subreaper
// (prctl PR_SET_CHILD_SUBREAPER): a descendant whose parent ends becomes a child of this process,
// even after setsid or a double fork, so that "below this process" misses none.
//
// At most one at a time in a process, and all children must be started through it: it takes a child
// it does not know for an orphan and reaps it. kill -9 of this process ends the children that Start
// made (parent_death_signal) but not what they started. To end those as well, mark them with an
// environment variable and have another process call EndMarked.
//
// Thread-safe; for Start see ChildSpec::parent_death_signal.
class ProcessTree {
 public:
  // FAILED_PRECONDITION if this process has one already.
  static absl::StatusOr<std::unique_ptr<ProcessTree>> Create();
  // Does not stop running processes. Children may outlive the tree.
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // As Child::Start; the child's owner waits for it, never the tree.
  absl::StatusOr<std::unique_ptr<Child>> Start(const ChildSpec& spec);

  // All processes below this one that have not ended, parents first.
  std::vector<ProcessStat> Running() const;

  // Waits, without blocking, for orphans that have ended; returns how many. The tree's owner calls
  // it now and then; Stop calls it as well.
  int ReapOrphans();

  // Ends all processes below this one: SIGTERM to each, the grace period, then SIGKILL until none
  // is left. Children started here must still be waited for, which then never blocks.
  // DEADLINE_EXCEEDED names the processes that are left: those blocked in the kernel (state D).
  absl::StatusOr<StopReport> Stop(const StopOptions& options);

  // `with_pss` walks page tables: some milliseconds for a gigabyte.
  TreeUsage Usage(bool with_pss) const;

 private:
  ProcessTree() = default;

  const std::shared_ptr<ChildSet> children_ = std::make_shared<ChildSet>();
};

// Ends, as Stop does, the processes that have "NAME=VALUE" in their environment and all below them:
// those left by a killed agent. They need not be below this process; processes of other users are
// not touched.
absl::StatusOr<StopReport> EndMarked(std::string_view entry, const StopOptions& options);

}  // namespace muster::process
