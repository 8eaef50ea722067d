#include "muster/control/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

#include "muster/base/clock.h"
#include "muster/control/agent_link.h"
#include "muster/control/checkpoint_watch.h"
#include "muster/control/coordinator.h"
#include "muster/control/evaluator_watch.h"
#include "muster/control/job_access.h"
#include "muster/control/progress.h"
#include "muster/files/file_systems.h"
#include "muster/io/file_system.h"
#include "muster/process/deadline.h"
#include "muster/process/diagnosis.h"
#include "muster/process/heartbeat.h"
#include "muster/process/memory_limit.h"
#include "muster/process/output_log.h"
#include "muster/process/ports.h"
#include "muster/process/process_tree.h"

namespace muster::control {
namespace {

using State = AgentReport::State;

constexpr double kLookSeconds = kAgentLookSeconds;  // between two looks at a task that runs
constexpr double kLateLookSeconds = 4;  // a look that comes so late: this process did not run
constexpr int kLooksPerPss = 10;        // Pss walks page tables
constexpr double kLogSeconds = 2;       // for the rest of the output, after the task's end
constexpr size_t kLastLines = 20;
constexpr int64_t kJournalBytes = 16 << 20;  // of the disk, which output leaves to the journal
constexpr double kMinModelLookSeconds = 5, kMaxModelLookSeconds = 30;
constexpr size_t kLastLineBytes = 300;
// A look at a task that hangs: CPU use over so long, then py-spy; within the coordinator's
// patience.
constexpr double kSampleSeconds = 1;
constexpr double kPySpySeconds = 3;
constexpr int kMaxProcesses = 6;
constexpr size_t kMaxDiagnosisLines = 150;
constexpr uint64_t kMaxUrlBytes = 4096;

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "muster agent: %s\n", std::string(ToStd(status.message())).c_str());
}

job::TaskEnd GetEnd(const process::ExitInfo& exit) {
  if (exit.signal != 0) return {.signal = exit.signal};
  return {.exit_code = exit.code};
}

// The last line with a word in it, cut where it is long.
std::string GetLastLine(const std::vector<std::string>& lines) {
  const auto has_words = [](const std::string& line) {
    return line.find_first_not_of(" \t\r") != std::string::npos;
  };
  const auto last = std::find_if(lines.rbegin(), lines.rend(), has_words);
  return last == lines.rend() ? "" : last->substr(0, kLastLineBytes);
}

// As a command on another machine names it.
constexpr char kProgramName[] = "muster";

absl::StatusOr<std::string> OwnPath() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "cannot find the program that runs");
  return path.string();
}

// A task of our own.
bool IsThisProgram(const std::string& path) {
  struct stat own;
  struct stat other;
  return stat("/proc/self/exe", &own) == 0 && stat(path.c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

class Agent {
 public:
  explicit Agent(const AgentOptions& options) : options_(options) {
    report_.task = options.id.task;
    report_.incarnation = options.id.incarnation;
    report_.pid = getpid();
    report_.slot = options.slot;
  }

  absl::Status Run();

 private:
  absl::Status Prepare();
  std::unique_ptr<net::HttpClient> FindCoordinator(std::string& url) const;
  absl::Status HoldPort();
  job::TaskEnd RunTask();
  std::optional<StartOrder> WaitForStart();
  absl::Status StartChild(const StartOrder& order);
  void LimitMemory(int64_t bytes);
  job::TaskEnd WatchChild();
  std::optional<job::TaskEnd> LookAtChild(double seconds);
  job::TaskEnd StopChild(double grace_seconds);
  void Say(State state, const std::string& said, bool urgent);
  std::vector<std::string> EnvironmentFor(const StartOrder& order) const;
  void WatchProgress(const StartOrder& order);
  void LookAtCheckpoints();
  std::string WhyLifeless();
  void Measure();
  void Diagnose();
  void LogDiagnosis();
  void Finish(job::TaskEnd end);
  bool lost();
  std::string LostText();
  void Pause();
  void Signal(int signal) const;

  const AgentOptions options_;
  AgentReport report_;
  std::unique_ptr<AgentLink> link_;
  std::optional<process::HeldPort> port_;
  std::unique_ptr<process::ProcessTree> tree_;
  const SystemClock clock_;
  std::unique_ptr<process::OutputLog> log_;
  std::optional<Progress> progress_;                  // once it is started
  std::optional<EvaluatorWatch> evaluator_;           // the same, of an evaluator
  std::optional<CheckpointWatch> checkpoints_;        // the same
  std::optional<process::HeartbeatWatch> heartbeat_;  // the same
  std::unique_ptr<process::MemoryLimit> memory_;      // null: not limited
  std::unique_ptr<process::Child> child_;
  std::string py_spy_ = "py-spy";
  // When this process, or the coordinator that had told it to pause, was last seen not to run.
  double stood_still_at_ = 0;
  double looked_at_ = 0;
  int looks_ = 0;
};

absl::Status Agent::Prepare() {
  MUSTER_ASSIGN_OR_RETURN(const net::HttpClientOptions http,
                          ClientOptions(options_.folder, options_.coordinator_url));
  MUSTER_ASSIGN_OR_RETURN(auto poll_client, net::HttpClient::Create(http));
  MUSTER_ASSIGN_OR_RETURN(auto urgent_client, net::HttpClient::Create(http));
  AgentLink::Finder find;
  if (!options_.find_coordinator.empty()) {
    find = [this](std::string& url) { return FindCoordinator(url); };
  }
  link_ = std::make_unique<AgentLink>(std::move(poll_client), std::move(urgent_client), report_,
                                      options_.lease_seconds, std::move(find));
  MUSTER_ASSIGN_OR_RETURN(tree_, process::ProcessTree::Create());
  return absl::OkStatus();
}

// A client of the coordinator that is no longer at `url`, which is changed; null: it has not moved,
// as far as anybody knows. Any thread.
std::unique_ptr<net::HttpClient> Agent::FindCoordinator(std::string& url) const {
  const auto text =
      io::ReadFile(*files::OpenFileSystems(), options_.find_coordinator, kMaxUrlBytes);
  if (!text.ok()) return nullptr;  // being written, or its file system is silent as well
  const std::string found(absl::StripAsciiWhitespace(*text));
  if (found.empty() || found == url) return nullptr;
  const auto http = ClientOptions(options_.folder, found);
  auto client = http.ok() ? net::HttpClient::Create(*http) : http.status();
  if (!client.ok()) {
    Complain(Annotate(client.status(), options_.find_coordinator));
    return nullptr;
  }
  url = found;
  return *std::move(client);
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

// Silence counts only while both could have spoken: whoever was stopped together with the other, by
// Ctrl-Z or with the whole machine's tasks, has lost nobody.
bool Agent::lost() {
  const double now = static_cast<double>(clock_.MonotonicNanos()) * 1e-9;
  if (looked_at_ > 0 && now - looked_at_ > kLateLookSeconds) stood_still_at_ = now;
  looked_at_ = now;
  // Elsewhere the coordinator relies on the lease, also if this machine was suspended.
  if (options_.bundle) return link_->silent_seconds() > link_->lease_seconds();
  if (link_->orders().pause) {
    const auto coordinator = LivingCoordinator(options_.folder);
    const auto stat = coordinator ? process::ReadStat(*coordinator) : std::nullopt;
    if (stat && stat->state == 'T') stood_still_at_ = now;
  }
  return std::min(link_->silent_seconds(), now - stood_still_at_) > link_->lease_seconds();
}

void Agent::Signal(int signal) const {
  for (const process::ProcessStat& each : tree_->Running()) kill(each.pid, signal);
}

// Until the order is withdrawn, or there is another reason to continue.
void Agent::Pause() {
  Signal(SIGSTOP);
  Say(State::kRunning, kPausedText, /*urgent=*/true);
  while (true) {
    const AgentOrders orders = link_->orders();
    if (!orders.pause || orders.stop || lost()) break;
    if (LookAtChild(kLookSeconds)) break;  // somebody killed it
  }
  Signal(SIGCONT);
  progress_->Forgive(clock_.MonotonicNanos());
  Say(State::kRunning, "runs", /*urgent=*/true);
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
  auto limit = process::MemoryLimit::Create(GetMemoryGroup(options_.id), bytes);
  if (limit.ok()) {
    memory_ = *std::move(limit);
  } else {
    Complain(limit.status());
  }
}

std::vector<std::string> Agent::EnvironmentFor(const StartOrder& order) const {
  std::vector<std::string> environment = process::CurrentEnvironment();
  std::erase_if(environment,
                [](const std::string& entry) { return entry.rfind("TF_CONFIG=", 0) == 0; });
  // Output that is looked at while the program runs; Python keeps it back otherwise.
  if (!process::FindEnvironment("PYTHONUNBUFFERED", environment)) {
    process::SetEnvironment("PYTHONUNBUFFERED", "1", &environment);
  }
  for (const auto& [name, value] : order.env) process::SetEnvironment(name, value, &environment);
  const std::string& folder = options_.folder.path;
  process::SetEnvironment(kMarkVariable, GetMark(folder, options_.id), &environment);
  process::SetEnvironment("MUSTER_STEP_FILE", StepPath(folder, options_.id), &environment);
  process::SetEnvironment("MUSTER_KEY_FILE", options_.folder.data_key(), &environment);
  if (options_.bundle && access(io::JoinPath(folder, "server.pem").c_str(), F_OK) == 0) {
    process::SetEnvironment("MUSTER_CERTS", folder, &environment);
  }
  if (options_.gpus) process::SetEnvironment("CUDA_VISIBLE_DEVICES", *options_.gpus, &environment);
  return environment;
}

// From here on the time without a sign of life counts.
void Agent::WatchProgress(const StartOrder& order) {
  ProgressOptions progress{.step_file = StepPath(options_.folder.path, options_.id)};
  progress.model_dir = order.model_dir;
  progress.look_seconds = order.progress_seconds > 0
                              ? std::clamp(order.progress_seconds / 10, 1.0, kMaxModelLookSeconds)
                              : kMinModelLookSeconds;
  progress_.emplace(std::move(progress), clock_.MonotonicNanos());
  if (options_.id.task.type == job::TaskType::kEvaluator) {
    evaluator_.emplace(order.model_dir, clock_.MonotonicNanos());
  }
  checkpoints_.emplace(order.model_dir);
}

void Agent::LookAtCheckpoints() {
  checkpoints_->Look();
  report_.lost_step = checkpoints_->lost_step();
}

absl::Status Agent::StartChild(const StartOrder& order) {
  process::OutputLogOptions log;
  log.file.path = options_.folder.task_log(options_.id.task);
  log.file.spared_bytes = kJournalBytes;
  log.tail_lines = kLastLines;
  if (options_.also_stdout) {
    std::signal(SIGPIPE, SIG_IGN);  // the reader may close its end
    log.copy_fd = STDOUT_FILENO;
  }
  MUSTER_ASSIGN_OR_RETURN(log_, process::OutputLog::Open(log, &clock_));
  process::ChildSpec spec;
  spec.argv = order.command;
  spec.environment = EnvironmentFor(order);
  spec.working_directory = order.working_directory;
  if (options_.bundle) {
    if (!spec.working_directory.empty()) {
      spec.working_directory = io::JoinPath(options_.folder.path, spec.working_directory);
    }
    // Another machine has it elsewhere, or brought along.
    if (spec.argv[0] == kProgramName) {
      MUSTER_ASSIGN_OR_RETURN(spec.argv[0], OwnPath());
    }
  }
  spec.stdout_fd = spec.stderr_fd = log_->writer_fd();
  spec.cpus = options_.cpus;
  if (order.memory_bytes > 0) LimitMemory(order.memory_bytes);
  if (memory_ != nullptr) spec.cgroup_procs_fd = memory_->procs_fd();
  WatchProgress(order);
  MUSTER_ASSIGN_OR_RETURN(heartbeat_,
                          process::HeartbeatWatch::Create(&spec, IsThisProgram(spec.argv[0])));
  // Of the Python that the program runs in.
  const std::string py_spy = io::JoinPath(io::Dirname(order.command[0]), "py-spy");
  if (order.command[0][0] == '/' && access(py_spy.c_str(), X_OK) == 0) py_spy_ = py_spy;
  MUSTER_ASSIGN_OR_RETURN(child_, tree_->Start(spec));
  log_->CloseWriter();
  heartbeat_->CloseWriter();
  report_.child_pid = child_->pid();
  return absl::OkStatus();
}

void Agent::Measure() {
  const bool with_pss = looks_++ % kLooksPerPss == 0;
  const process::TreeUsage usage = tree_->Usage(with_pss);
  report_.cpu_seconds = usage.cpu_seconds;
  if (with_pss) report_.pss_bytes = usage.pss_bytes;
  progress_->Look(clock_.MonotonicNanos(), log_->last_output_nanos());
  report_.idle_seconds = progress_->idle_seconds();
  report_.step = progress_->step();
  report_.counts = progress_->counts();
  report_.saved = progress_->saved();
  LookAtCheckpoints();
  if (!evaluator_) return;
  evaluator_->Look({.now_nanos = clock_.MonotonicNanos(),
                    .output_bytes = log_->bytes(),
                    .cpu_seconds = usage.cpu_seconds},
                   [this] {
                     std::vector<pid_t> pids;
                     for (const auto& running : tree_->Running()) pids.push_back(running.pid);
                     return pids;
                   });
  report_.work = evaluator_->work();
}

// What the task is doing, before it is ended for want of a sign of life.
void Agent::Diagnose() {
  if (!report_.diagnosis.empty()) return;
  Say(State::kRunning, "gave no sign of life: it is being examined", /*urgent=*/false);
  const process::CpuSample before = process::SampleCpu(*tree_, clock_);
  const int end = child_->pidfd();
  process::PollReadable(&end, 1, process::Deadline::After(kSampleSeconds));
  const process::Diagnosis found = process::Diagnose(
      tree_.get(), before, clock_,
      {.py_spy = py_spy_, .py_spy_timeout_seconds = kPySpySeconds, .max_processes = kMaxProcesses});
  report_.diagnosis = absl::StrSplit(process::PrintDiagnosis(found), '\n', absl::SkipEmpty());
  if (report_.diagnosis.size() > kMaxDiagnosisLines) {
    report_.diagnosis.resize(kMaxDiagnosisLines - 1);
    report_.diagnosis.emplace_back("(and more)");
  }
}

// Behind the task's own output.
void Agent::LogDiagnosis() {
  if (report_.diagnosis.empty()) return;
  auto log = process::LogFile::Open({.path = options_.folder.task_log(options_.id.task)});
  if (!log.ok()) return Complain(log.status());
  std::string text = "[muster: it gave no sign of life and was stopped; what it did before:]\n";
  for (const std::string& line : report_.diagnosis) text += StrCat("[muster: ", line, "]\n");
  (*log)->Append(text);
  if (const absl::Status written = (*log)->Close(); !written.ok()) Complain(written);
}

// Its end, if that comes within so many seconds or before there is news.
std::optional<job::TaskEnd> Agent::LookAtChild(double seconds) {
  const int fds[] = {child_->pidfd(), link_->news_fd()};
  process::PollReadable(fds, 2, process::Deadline::After(seconds));
  link_->ClearNews();
  const auto exit = child_->Wait(0);
  if (exit.ok()) return GetEnd(*exit);
  if (absl::IsDeadlineExceeded(exit.status())) return std::nullopt;
  return job::TaskEnd{.lost = true, .detail = std::string(ToStd(exit.status().message()))};
}

job::TaskEnd Agent::StopChild(double grace_seconds) {
  const auto stopped = tree_->Stop({.grace_seconds = grace_seconds});
  const auto exit = child_->Wait(0);
  if (exit.ok()) return GetEnd(*exit);
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
      if (orders.diagnose) Diagnose();
      Say(State::kRunning, StrCat("stops: ", orders.stop_reason), /*urgent=*/false);
      return StopChild(orders.grace_seconds);
    }
    if (orders.pause) {
      Pause();
      continue;
    }
    if (lost()) {
      job::TaskEnd end = StopChild(kLostGraceSeconds);
      end.detail = LostText();
      end.disrupted = options_.bundle;  // the network's, or the other machine's
      return end;
    }
    if (const std::string why = WhyLifeless(); !why.empty()) {
      job::TaskEnd end = StopChild(/*grace_seconds=*/0);
      end.detail = why;
      return end;
    }
    Measure();
    Say(State::kRunning, "runs", /*urgent=*/false);
  }
}

// "" while it lives. A task that was stopped holds up all the others, and cannot obey.
std::string Agent::WhyLifeless() {
  if (heartbeat_->Look(clock_.MonotonicNanos()) < link_->lease_seconds()) return "";
  const auto stat = process::ReadStat(child_->pid());
  const char state = stat ? stat->state : '?';
  if (state == 't') return "";  // a debugger holds it
  return StrCat(state == 'T' ? "was stopped (SIGSTOP)" : "gave no sign of life", " for ",
                job::PrintDuration(link_->lease_seconds()), ", and was killed");
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
void Agent::Finish(job::TaskEnd end) {
  if (log_ != nullptr) {
    if (const absl::Status whole = log_->Finish(kLogSeconds); !whole.ok()) Complain(whole);
    report_.last_lines = log_->Tail();
    if (!end.succeeded()) end.last_line = GetLastLine(report_.last_lines);
    LogDiagnosis();
  }
  port_.reset();
  if (const absl::Status written = WriteEnd(options_.folder.path, options_.id, end);
      !written.ok()) {
    Complain(written);
  }
  if (progress_) {  // its last words
    progress_->Look(clock_.MonotonicNanos(), 0, /*last=*/true);
    report_.step = progress_->step();
    report_.counts = progress_->counts();
    report_.saved = progress_->saved();
    LookAtCheckpoints();
  }
  report_.work.reset();
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
  Finish(std::move(end));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunAgent(const AgentOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const auto claim,
                          IncarnationClaim::Take(options.folder.path, options.id));
  if (!claim.has_value()) return absl::OkStatus();  // another agent has it, or nobody may
  return Agent(options).Run();
}

absl::Status SweepAgent(const JobFolder& folder, const IncarnationId& id) {
  MUSTER_ASSIGN_OR_RETURN(const IncarnationMark mark, LookAtIncarnation(folder.path, id));
  if (mark.state == IncarnationMark::State::kHeld) {
    return absl::FailedPreconditionError(
        StrCat("the agent of ", IncarnationName(id.task, id.incarnation), " runs"));
  }
  return process::EndMarked(StrCat(kMarkVariable, "=", GetMark(folder.path, id)),
                            {.grace_seconds = 0})
      .status();
}

}  // namespace muster::control
