#include "muster/control/agent_task.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_split.h"

#include "muster/control/incarnation.h"
#include "muster/control/tensorflow_hdfs.h"
#include "muster/files/file_systems.h"
#include "muster/io/file_system.h"
#include "muster/job/tony_environment.h"
#include "muster/process/deadline.h"
#include "muster/process/diagnosis.h"
#include "muster/process/log_file.h"

namespace muster::control {
namespace {

constexpr int kLooksPerPss = 10;   // Pss walks page tables
constexpr double kLogSeconds = 2;  // for the rest of the output, after the task's end
constexpr size_t kLastLines = 20;
constexpr int64_t kJournalBytes = 16 << 20;  // of the disk, which output leaves to the journal
constexpr double kMinModelLookSeconds = 5, kMaxModelLookSeconds = 30;
// A look at a task that hangs: CPU use over so long, then py-spy; within the coordinator's
// patience.
constexpr double kSampleSeconds = 1;
constexpr double kPySpySeconds = 3;
constexpr int kMaxProcesses = 6;
constexpr size_t kMaxDiagnosisLines = 150;
constexpr char kTensorBoardPort[] = "TB_PORT";  // TonY's word

void ComplainOfTask(const absl::Status& status) {
  std::fprintf(stderr, "muster agent: %s\n", std::string(ToStd(status.message())).c_str());
}

job::TaskEnd GetEnd(const process::ExitInfo& exit) {
  if (exit.signal != 0) return {.signal = exit.signal};
  return {.exit_code = exit.code};
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

// A task of our own refuses plain text together with certificates.
bool AsksForPlainText(const StartOrder& order, const std::vector<std::string>& environment) {
  const std::string asked = process::FindEnvironment("MUSTER_PLAIN_TEXT", environment).value_or("");
  return (!asked.empty() && asked != "0") ||
         std::ranges::find(order.command, "--plain-text") != order.command.end();
}

std::vector<std::string> EnvironmentFor(const StartOrder& order, const AgentOptions& options) {
  std::vector<std::string> environment = process::CurrentEnvironment();
  std::erase_if(environment,
                [](const std::string& entry) { return entry.rfind("TF_CONFIG=", 0) == 0; });
  // Output that is looked at while the program runs; Python keeps it back otherwise.
  if (!process::FindEnvironment("PYTHONUNBUFFERED", environment)) {
    process::SetEnvironment("PYTHONUNBUFFERED", "1", &environment);
  }
  for (const auto& [name, value] : order.env) process::SetEnvironment(name, value, &environment);
  const std::string& folder = options.folder.path;
  process::SetEnvironment(kMarkVariable, GetMark(folder, options.id), &environment);
  process::SetEnvironment("MUSTER_STEP_FILE", StepPath(folder, options.id), &environment);
  process::SetEnvironment("MUSTER_KEY_FILE", options.folder.data_key(), &environment);
  if (options.bundle && !AsksForPlainText(order, environment) &&
      access(io::JoinPath(folder, "server.pem").c_str(), F_OK) == 0) {
    process::SetEnvironment("MUSTER_CERTS", folder, &environment);
  }
  if (options.gpus) process::SetEnvironment("CUDA_VISIBLE_DEVICES", *options.gpus, &environment);
  return environment;
}

LifeSignsOptions MakeLifeSignsOptions(const StartOrder& order, const AgentOptions& options) {
  LifeSignsOptions signs{.step_file = StepPath(options.folder.path, options.id)};
  signs.model_dir = order.model_dir;
  signs.look_seconds = order.progress_seconds > 0
                           ? std::clamp(order.progress_seconds / 10, 1.0, kMaxModelLookSeconds)
                           : kMinModelLookSeconds;
  return signs;
}

}  // namespace

// From here on the time without a sign of life counts.
AgentTask::AgentTask(const AgentOptions& options, const StartOrder& order,
                     process::ProcessTree* tree, const Clock* clock)
    : options_(options),
      machine_files_(files::OpenFileSystems()),
      tree_(tree),
      clock_(clock),
      life_signs_(MakeLifeSignsOptions(order, options), clock->MonotonicNanos()),
      checkpoints_(order.model_dir) {
  if (options.id.task.type == job::TaskType::kEvaluator) {
    evaluator_.emplace(order.model_dir, clock->MonotonicNanos(),
                       options.files != nullptr ? options.files : machine_files_.get());
  }
}

absl::StatusOr<std::unique_ptr<AgentTask>> AgentTask::Start(const AgentOptions& options,
                                                            const StartOrder& order,
                                                            process::ProcessTree* tree,
                                                            const Clock* clock) {
  std::unique_ptr<AgentTask> task(new AgentTask(options, order, tree, clock));
  MUSTER_RETURN_IF_ERROR(task->StartChild(order));
  return task;
}

// Where the machine gives no such limit the task runs without, and the agent's log says why.
void AgentTask::LimitMemory(int64_t bytes) {
  auto limit = process::MemoryLimit::Create(GetMemoryGroup(options_.id), bytes);
  if (limit.ok()) {
    memory_ = *std::move(limit);
  } else {
    ComplainOfTask(limit.status());
  }
}

// A program of TonY shows its TensorBoard at a port that it finds in its environment.
void AgentTask::HoldTensorBoardPort(std::vector<std::string>* environment) {
  if (!process::FindEnvironment(job::kTonyChiefVariable, *environment) ||
      process::FindEnvironment(kTensorBoardPort, *environment)) {
    return;
  }
  auto held = process::HeldPort::Any({});
  if (!held.ok()) return ComplainOfTask(held.status());
  process::SetEnvironment(kTensorBoardPort, StrCat(held->port()), environment);
  tensorboard_port_.emplace(*std::move(held));
}

absl::Status AgentTask::StartChild(const StartOrder& order) {
  process::OutputLogOptions log;
  log.file.path = options_.folder.task_log(options_.id.task);
  log.file.spared_bytes = kJournalBytes;
  log.tail_lines = kLastLines;
  if (options_.also_stdout) {
    std::signal(SIGPIPE, SIG_IGN);  // the reader may close its end
    log.copy_fd = STDOUT_FILENO;
  }
  MUSTER_ASSIGN_OR_RETURN(log_, process::OutputLog::Open(log, clock_));
  process::ChildSpec spec;
  spec.argv = order.command;
  spec.environment = EnvironmentFor(order, options_);
  HoldTensorBoardPort(&spec.environment);
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
  if (!IsThisProgram(spec.argv[0])) AddTensorFlowHdfs(FindTensorFlowHdfs(), &spec.environment);
  spec.cpus = options_.cpus;
  if (order.memory_bytes > 0) LimitMemory(order.memory_bytes);
  if (memory_ != nullptr) spec.cgroup_procs_fd = memory_->procs_fd();
  MUSTER_ASSIGN_OR_RETURN(heartbeat_,
                          process::HeartbeatWatch::Create(&spec, IsThisProgram(spec.argv[0])));
  // Of the Python that the program runs in.
  const std::string py_spy = io::JoinPath(io::Dirname(order.command[0]), "py-spy");
  if (order.command[0][0] == '/' && access(py_spy.c_str(), X_OK) == 0) py_spy_ = py_spy;
  MUSTER_ASSIGN_OR_RETURN(child_, tree_->Start(spec));
  log_->CloseWriter();
  heartbeat_->CloseWriter();
  return absl::OkStatus();
}

std::optional<job::TaskEnd> AgentTask::FindEnd() {
  const auto exit = child_->Wait(0);
  if (exit.ok()) return GetEnd(*exit);
  if (absl::IsDeadlineExceeded(exit.status())) return std::nullopt;
  return job::TaskEnd{.lost = true, .detail = std::string(ToStd(exit.status().message()))};
}

job::TaskEnd AgentTask::Stop(double grace_seconds) {
  const auto stopped = tree_->Stop({.grace_seconds = grace_seconds});
  const auto exit = child_->Wait(0);
  if (exit.ok()) return GetEnd(*exit);
  const absl::Status& why = stopped.ok() ? exit.status() : stopped.status();
  return {.lost = true, .detail = std::string(ToStd(why.message()))};
}

void AgentTask::Signal(int signal) const {
  for (const process::ProcessStat& each : tree_->Running()) kill(each.pid, signal);
}

void AgentTask::Put(AgentReport* report) {
  report->step = life_signs_.step();
  report->counts = life_signs_.counts();
  report->saved = life_signs_.saved();
  checkpoints_.Look();
  report->lost_step = checkpoints_.lost_step();
}

void AgentTask::Measure(AgentReport* report) {
  const bool with_pss = looks_++ % kLooksPerPss == 0;
  const process::TreeUsage usage = tree_->Usage(with_pss);
  report->cpu_seconds = usage.cpu_seconds;
  if (with_pss) report->pss_bytes = usage.pss_bytes;
  life_signs_.Look(clock_->MonotonicNanos(), log_->last_output_nanos());
  report->idle_seconds = life_signs_.idle_seconds();
  Put(report);
  if (!evaluator_) return;
  evaluator_->Look({.now_nanos = clock_->MonotonicNanos(),
                    .output_bytes = log_->bytes(),
                    .cpu_seconds = usage.cpu_seconds},
                   [this] {
                     std::vector<pid_t> pids;
                     for (const auto& running : tree_->Running()) pids.push_back(running.pid);
                     return pids;
                   });
  report->work = evaluator_->work();
}

void AgentTask::MeasureLast(AgentReport* report) {
  life_signs_.Look(clock_->MonotonicNanos(), 0, /*last=*/true);
  Put(report);
}

std::string AgentTask::WhyLifeless(double lease_seconds) {
  if (heartbeat_->Look(clock_->MonotonicNanos()) < lease_seconds) return "";
  const auto stat = process::ReadStat(child_->pid());
  const char state = stat ? stat->state : '?';
  if (state == 't') return "";  // a debugger holds it
  return StrCat(state == 'T' ? "was stopped (SIGSTOP)" : "gave no sign of life", " for ",
                job::PrintDuration(lease_seconds), ", and was killed");
}

std::vector<std::string> AgentTask::Diagnose() {
  const process::CpuSample before = process::SampleCpu(*tree_, *clock_);
  const int end = child_->pidfd();
  process::PollReadable(&end, 1, process::Deadline::After(kSampleSeconds));
  const process::Diagnosis found = process::Diagnose(
      tree_, before, *clock_,
      {.py_spy = py_spy_, .py_spy_timeout_seconds = kPySpySeconds, .max_processes = kMaxProcesses});
  std::vector<std::string> lines =
      absl::StrSplit(process::PrintDiagnosis(found), '\n', absl::SkipEmpty());
  if (lines.size() > kMaxDiagnosisLines) {
    lines.resize(kMaxDiagnosisLines - 1);
    lines.emplace_back("(and more)");
  }
  return lines;
}

std::vector<std::string> AgentTask::FinishOutput(const std::vector<std::string>& diagnosis) {
  if (const absl::Status whole = log_->Finish(kLogSeconds); !whole.ok()) ComplainOfTask(whole);
  std::vector<std::string> last_lines = log_->Tail();
  if (diagnosis.empty()) return last_lines;
  auto log = process::LogFile::Open({.path = options_.folder.task_log(options_.id.task)});
  if (!log.ok()) {
    ComplainOfTask(log.status());
    return last_lines;
  }
  std::string text = "[muster: it gave no sign of life and was stopped; what it did before:]\n";
  for (const std::string& line : diagnosis) text += StrCat("[muster: ", line, "]\n");
  (*log)->Append(text);
  if (const absl::Status written = (*log)->Close(); !written.ok()) ComplainOfTask(written);
  return last_lines;
}

bool AgentTask::ReleaseMemory() {
  if (memory_ == nullptr) return false;
  const bool out_of_memory = memory_->OutOfMemoryKills().value_or(0) > 0;
  memory_.reset();
  return out_of_memory;
}

}  // namespace muster::control
