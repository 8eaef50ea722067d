// All that a task started, and its end: nothing is left running, no zombie stays.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "muster/process/child.h"
#include "muster/process/proc.h"

namespace muster::process {

struct StopOptions {
  double grace_seconds = 10;      // between SIGTERM and SIGKILL; 0: SIGKILL at once
  double kill_wait_seconds = 10;  // for the kernel to end what was killed
};

struct StopReport {
  int told = 0;    // processes that got SIGTERM
  int killed = 0;  // processes that had to be killed
};

// What the processes of a tree use together.
struct TreeUsage {
  int processes = 0, threads = 0;  // running now
  // Of the running ones, of those they waited for and of those that this process reaped.
  double cpu_seconds = 0;
  int64_t pss_bytes = 0;  // of those that may be read; 0 unless asked for
};

// The tree of processes below this one. While it exists this process is a subreaper
// (prctl PR_SET_CHILD_SUBREAPER): a descendant whose parent ends becomes a child of this process,
// wherever it hid (own session, double fork), so that "below this process" misses none.
//
// At most one at a time in a process, and children are started through it alone: a child it does
// not know is an orphan to it and is reaped. kill -9 of this process ends the children that Start
// made (parent_death_signal) but not what they started: for that, mark them by a name of their
// environment and have whoever notices call EndMarked.
//
// Thread-safe; Start as ChildSpec::parent_death_signal says.
class ProcessTree {
 public:
  // FAILED_PRECONDITION when there is one in this process.
  static absl::StatusOr<std::unique_ptr<ProcessTree>> Create();
  // Does not stop what runs. Children may outlive the tree.
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // As Child::Start; the child is waited for by its owner, never by the tree.
  absl::StatusOr<std::unique_ptr<Child>> Start(const ChildSpec& spec);

  // Everything below this process that has not ended, parents first.
  std::vector<ProcessStat> Running() const;

  // Waits, without blocking, for orphans that have ended; says for how many. Their owner calls it
  // now and then; Stop does.
  int ReapOrphans();

  // Ends everything below this process: SIGTERM to each, the grace, then SIGKILL until there is
  // none. Children started here stay to be waited for, which then never blocks. An error,
  // DEADLINE_EXCEEDED, names what is still there: a process in the kernel's hands (state D).
  absl::StatusOr<StopReport> Stop(const StopOptions& options);

  // `with_pss` walks page tables: some milliseconds for a gigabyte.
  TreeUsage Usage(bool with_pss) const;

 private:
  ProcessTree() = default;

  const std::shared_ptr<ChildSet> children_ = std::make_shared<ChildSet>();
};

// Ends, as Stop does, the processes that carry "NAME=VALUE" in their environment and all below
// them: what an agent that was killed has left. They need not be below this process; processes of
// other users are not touched.
absl::StatusOr<StopReport> EndMarked(std::string_view entry, const StopOptions& options);

}  // namespace muster::process
