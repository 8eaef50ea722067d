// AgentTask: the process of one task beside its agent, with all that it starts: its environment,
// its output, its memory limit, and what can be seen of its work. Ends of tasks are described here;
// why one is ended is the agent's business (agent.cc).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/control/agent.h"
#include "muster/control/checkpoint_watch.h"
#include "muster/control/evaluator_watch.h"
#include "muster/control/life_signs.h"
#include "muster/control/protocol.h"
#include "muster/process/child.h"
#include "muster/process/heartbeat.h"
#include "muster/process/memory_limit.h"
#include "muster/process/output_log.h"
#include "muster/process/ports.h"
#include "muster/process/process_tree.h"

namespace muster::control {

// One owner thread. Measure() and MeasureLast() read the task's files and its model folder, and may
// be held up as long as a file system does not answer.
class AgentTask {
 public:
  // Starts the program of `order`. All arguments must outlive the task. An error says why the
  // program cannot start.
  static absl::StatusOr<std::unique_ptr<AgentTask>> Start(const AgentOptions& options,
                                                          const StartOrder& order,
                                                          process::ProcessTree* tree,
                                                          const Clock* clock);

  pid_t pid() const { return child_->pid(); }
  // Readable once the program has ended.
  int pidfd() const { return child_->pidfd(); }

  // The program's end; none while it runs.
  std::optional<job::TaskEnd> FindEnd();
  // Ends the program and all that it has started: SIGTERM, then SIGKILL.
  job::TaskEnd Stop(double grace_seconds);
  // Sends the signal to each of its processes.
  void Signal(int signal) const;

  // Puts into the report what the task uses and how far it is. To be called about once a second.
  void Measure(AgentReport* report);
  // The same after its end, for the last time.
  void MeasureLast(AgentReport* report);
  // Time up to now is no time without a sign of life.
  void Forgive() { life_signs_.Forgive(clock_->MonotonicNanos()); }
  // "" while the program gives signs of life as it must, else how long it has given none, as the
  // detail of its end. A task that was stopped holds up all the others, and cannot obey.
  std::string WhyLifeless(double lease_seconds);
  // What the task is doing, one line each. It takes some seconds.
  std::vector<std::string> Diagnose();

  // After the end, once: takes the rest of the output and writes the diagnosis after it. Returns
  // the last lines of the task's own output.
  std::vector<std::string> FinishOutput(const std::vector<std::string>& diagnosis);
  // After the end, once: whether the memory limit has ended a process of the task.
  bool ReleaseMemory();

 private:
  AgentTask(const AgentOptions& options, const StartOrder& order, process::ProcessTree* tree,
            const Clock* clock);
  absl::Status StartChild(const StartOrder& order);
  void LimitMemory(int64_t bytes);
  void HoldTensorBoardPort(std::vector<std::string>* environment);
  void Put(AgentReport* report);

  const AgentOptions& options_;
  const std::unique_ptr<io::FileSystem> machine_files_;
  process::ProcessTree* const tree_;
  const Clock* const clock_;
  std::unique_ptr<process::OutputLog> log_;
  LifeSigns life_signs_;
  std::optional<EvaluatorWatch> evaluator_;  // none: it is no evaluator
  CheckpointWatch checkpoints_;
  std::optional<process::HeartbeatWatch> heartbeat_;
  std::unique_ptr<process::MemoryLimit> memory_;       // null: not limited
  std::optional<process::HeldPort> tensorboard_port_;  // none: the task is not TonY's chief
  std::unique_ptr<process::Child> child_;
  std::string py_spy_ = "py-spy";
  int looks_ = 0;
};

}  // namespace muster::control
