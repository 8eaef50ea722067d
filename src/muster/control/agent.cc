#include "muster/control/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "muster/base/clock.h"
#include "muster/control/agent_link.h"
#include "muster/control/job_access.h"
#include "muster/process/deadline.h"
#include "muster/process/memory_limit.h"
#include "muster/process/output_log.h"
#include "muster/process/ports.h"
#include "muster/process/process_tree.h"

namespace muster::control {
namespace {

using State = AgentReport::State;

constexpr double kLookSeconds = 1;       // between two looks at a task that runs
constexpr int kLooksPerPss = 10;         // Pss walks page tables
constexpr double kLostGraceSeconds = 3;  // nobody waits for a task without coordinator
constexpr double kLogSeconds = 2;        // for the rest of the output, after the task's end
constexpr size_t kLastLines = 20;
constexpr int64_t kJournalBytes = 16 << 20;  // of the disk, which output leaves to the journal

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "muster agent: %s\n", std::string(ToStd(status.message())).c_str());
}

job::TaskEnd EndOf(const process::ExitInfo& exit) {
  if (exit.signal != 0) return {.signal = exit.signal};
  return {.exit_code = exit.code};
}

class Agent {
 public:
  explicit Agent(const AgentOptions& options) : options_(options) {
    report_.task = options.id.task;
    report_.incarnation = options.id.incarnation;
    report_.pid = getpid();
  }

  absl::Status Run();

 private:
  absl::Status Prepare();
  absl::Status HoldPort();
  job::TaskEnd RunTask();
  std::optional<StartOrder> WaitForStart();
  absl::Status StartChild(const StartOrder& order);
  void LimitMemory(int64_t bytes);
  job::TaskEnd WatchChild();
  std::optional<job::TaskEnd> LookAtChild(double seconds);
  job::TaskEnd StopChild(double grace_seconds);
  void Say(State state, const std::string& said, bool urgent);
  void Measure();
  void Finish(const job::TaskEnd& end);
  bool lost() { return link_->silent_seconds() > link_->lease_seconds(); }
  std::string LostText();

  const AgentOptions options_;
  AgentReport report_;
  std::unique_ptr<AgentLink> link_;
  std::optional<process::HeldPort> port_;
  std::unique_ptr<process::ProcessTree> tree_;
  const SystemClock clock_;
  std::unique_ptr<process::OutputLog> log_;
  std::unique_ptr<process::MemoryLimit> memory_;  // null: not limited
  std::unique_ptr<process::Child> child_;
  int looks_ = 0;
};

absl::Status Agent::Prepare() {
  MUSTER_ASSIGN_OR_RETURN(const net::HttpClientOptions http,
                          ClientOptions(options_.folder, options_.coordinator_url));
  MUSTER_ASSIGN_OR_RETURN(auto poll_client, net::HttpClient::Create(http));
  MUSTER_ASSIGN_OR_RETURN(auto urgent_client, net::HttpClient::Create(http));
  link_ = std::make_unique<AgentLink>(std::move(poll_client), std::move(urgent_client), report_,
                                      options_.lease_seconds);
  MUSTER_ASSIGN_OR_RETURN(tree_, process::ProcessTree::Create());
  return absl::OkStatus();
}

// The wished port, or where that is not required, any.
absl::Status Agent::HoldPort() {
  if (options_.port > 0) {
    auto held = process::HeldPort::Fixed(options_.port, {});
    if (held.ok()) {
      port_.emplace(*std::move(held));
    } else if (options_.port_required) {
      return held.status();
    }
  }
  if (!port_) {
    auto held = process::HeldPort::Any({});
    MUSTER_RETURN_IF_ERROR(held.status());
    port_.emplace(*std::move(held));
  }
  report_.address = StrCat(options_.host, ":", port_->port());
  return absl::OkStatus();
}

void Agent::Say(State state, const std::string& said, bool urgent) {
  report_.state = state;
  report_.said = said;
  link_->Tell(report_, urgent);
}

std::string Agent::LostText() {
  const std::string why = link_->last_error();
  return StrCat("the coordinator was silent for ", job::PrintDuration(link_->lease_seconds()),
                why.empty() ? "" : StrCat(": ", why));
}

// None: it was told to stop, or lost its coordinator, before it was told to start.
std::optional<StartOrder> Agent::WaitForStart() {
  while (true) {
    const AgentOrders orders = link_->orders();
    if (orders.stop || lost()) return std::nullopt;
    if (orders.start) return orders.start;
    pollfd news{.fd = link_->news_fd(), .events = POLLIN, .revents = 0};
    poll(&news, 1, static_cast<int>(kLookSeconds * 1000));
    link_->ClearNews();
  }
}

// Where the machine gives no such limit the task runs without, and the agent's log says why.
void Agent::LimitMemory(int64_t bytes) {
  auto limit = process::MemoryLimit::Create(MemoryGroupOf(options_.id), bytes);
  if (limit.ok()) {
    memory_ = *std::move(limit);
  } else {
    Complain(limit.status());
  }
}

absl::Status Agent::StartChild(const StartOrder& order) {
  process::OutputLogOptions log;
  log.file.path = options_.folder.task_log(options_.id.task);
  log.file.spared_bytes = kJournalBytes;
  log.tail_lines = kLastLines;
  MUSTER_ASSIGN_OR_RETURN(log_, process::OutputLog::Open(log, &clock_));
  process::ChildSpec spec;
  spec.argv = order.command;
  spec.environment = process::CurrentEnvironment();
  std::erase_if(spec.environment,
                [](const std::string& entry) { return entry.rfind("TF_CONFIG=", 0) == 0; });
  // Output that is looked at while the program runs; Python keeps it back otherwise.
  if (!process::FindEnvironment("PYTHONUNBUFFERED", spec.environment)) {
    process::SetEnvironment("PYTHONUNBUFFERED", "1", &spec.environment);
  }
  for (const auto& [name, value] : order.env) {
    process::SetEnvironment(name, value, &spec.environment);
  }
  process::SetEnvironment(kMarkVariable, MarkOf(options_.folder.path, options_.id),
                          &spec.environment);
  spec.working_directory = order.working_directory;
  spec.stdout_fd = spec.stderr_fd = log_->writer_fd();
  spec.cpus = options_.cpus;
  if (order.memory_bytes > 0) LimitMemory(order.memory_bytes);
  if (memory_ != nullptr) spec.cgroup_procs_fd = memory_->procs_fd();
  if (options_.gpus)
    process::SetEnvironment("CUDA_VISIBLE_DEVICES", *options_.gpus, &spec.environment);
  MUSTER_ASSIGN_OR_RETURN(child_, tree_->Start(spec));
  log_->CloseWriter();
  report_.child_pid = child_->pid();
  return absl::OkStatus();
}

void Agent::Measure() {
  const bool with_pss = looks_++ % kLooksPerPss == 0;
  const process::TreeUsage usage = tree_->Usage(with_pss);
  report_.cpu_seconds = usage.cpu_seconds;
  if (with_pss) report_.pss_bytes = usage.pss_bytes;
  report_.idle_seconds =
      static_cast<double>(clock_.MonotonicNanos() - log_->last_output_nanos()) * 1e-9;
}

// Its end, if that comes within so many seconds or before there is news.
std::optional<job::TaskEnd> Agent::LookAtChild(double seconds) {
  const int fds[] = {child_->pidfd(), link_->news_fd()};
  process::PollReadable(fds, 2, process::Deadline::After(seconds));
  link_->ClearNews();
  const auto exit = child_->Wait(0);
  if (exit.ok()) return EndOf(*exit);
  if (absl::IsDeadlineExceeded(exit.status())) return std::nullopt;
  return job::TaskEnd{.lost = true, .detail = std::string(ToStd(exit.status().message()))};
}

job::TaskEnd Agent::StopChild(double grace_seconds) {
  const auto stopped = tree_->Stop({.grace_seconds = grace_seconds});
  const auto exit = child_->Wait(0);
  if (exit.ok()) return EndOf(*exit);
  const absl::Status& why = stopped.ok() ? exit.status() : stopped.status();
  return {.lost = true, .detail = std::string(ToStd(why.message()))};
}

job::TaskEnd Agent::WatchChild() {
  while (true) {
    if (auto end = LookAtChild(kLookSeconds)) {
      // What it started goes with it.
      (void)tree_->Stop({.grace_seconds = std::min(kLostGraceSeconds, link_->lease_seconds())});
      return *end;
    }
    tree_->ReapOrphans();
    const AgentOrders orders = link_->orders();
    if (orders.stop) {
      Say(State::kRunning, StrCat("stops: ", orders.stop_reason), /*urgent=*/false);
      return StopChild(orders.grace_seconds);
    }
    if (lost()) {
      job::TaskEnd end = StopChild(kLostGraceSeconds);
      end.detail = LostText();
      return end;
    }
    Measure();
    Say(State::kRunning, "runs", /*urgent=*/false);
  }
}

job::TaskEnd Agent::RunTask() {
  if (const absl::Status held = HoldPort(); !held.ok()) {
    return {.detail = StrCat("cannot start: ", ToStd(held.message()))};
  }
  Say(State::kWaiting, "waits for the others", /*urgent=*/true);
  const auto order = WaitForStart();
  if (!order) {
    const AgentOrders orders = link_->orders();
    return {.lost = true, .detail = orders.stop ? orders.stop_reason : LostText()};
  }
  if (const absl::Status started = StartChild(*order); !started.ok()) {
    return {.detail = StrCat("cannot start: ", ToStd(started.message()))};
  }
  Say(State::kRunning, "runs", /*urgent=*/true);
  return WatchChild();
}

// In writing first, so that the end is known whoever lives; then it is told, and told again until
// that is written down too or nobody is there.
void Agent::Finish(const job::TaskEnd& end) {
  if (log_ != nullptr) {
    if (const absl::Status whole = log_->Finish(kLogSeconds); !whole.ok()) Complain(whole);
    report_.last_lines = log_->Tail();
  }
  port_.reset();
  if (const absl::Status written = WriteEnd(options_.folder.path, options_.id, end);
      !written.ok()) {
    Complain(written);
  }
  report_.end = end;
  Say(State::kEnded, end.Describe(), /*urgent=*/true);
  while (!link_->orders().end_taken && !lost()) {
    pollfd news{.fd = link_->news_fd(), .events = POLLIN, .revents = 0};
    poll(&news, 1, static_cast<int>(kLookSeconds * 1000));
    link_->ClearNews();
  }
}

absl::Status Agent::Run() {
  MUSTER_RETURN_IF_ERROR(Prepare());
  job::TaskEnd end = RunTask();
  if (memory_ != nullptr) end.out_of_memory = memory_->OutOfMemoryKills().value_or(0) > 0;
  memory_.reset();  // before the end is told: nobody waits for this process afterwards
  Finish(end);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunAgent(const AgentOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const auto claim,
                          IncarnationClaim::Take(options.folder.path, options.id));
  if (!claim.has_value()) return absl::OkStatus();  // another agent has it, or nobody may
  return Agent(options).Run();
}

}  // namespace muster::control
