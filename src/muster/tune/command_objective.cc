#include "muster/tune/command_objective.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/process/child.h"
#include "muster/tune/trial_output.h"

namespace muster::tune {
namespace {

using process::Child;
using process::Descriptor;

constexpr int kPollMillis = 200;
// Between SIGTERM and SIGKILL.
constexpr double kGraceSeconds = 30;

// A trial's process, with its output.
class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Start(std::vector<std::string> words,
                                                        const Trial& trial,
                                                        const std::string& log) {
    auto own = std::make_unique<Process>();
    own->log_ = Descriptor(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    int ends[2];
    if (own->log_.get() < 0) return ErrnoStatus(errno, StrCat("opening ", log));
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "making a pipe for a trial");
    own->output_ = Descriptor(ends[0]);
    const Descriptor write_end(ends[1]);
    process::ChildSpec spec = {.argv = std::move(words),
                               .environment = process::CurrentEnvironment(),
                               .stdout_fd = write_end.get(),
                               .stderr_fd = own->log_.get()};
    for (const auto& [name, value] : TrialEnvironment(trial)) {
      process::SetEnvironment(name, value, &spec.environment);
    }
    MUSTER_ASSIGN_OR_RETURN(own->child_, Child::Start(spec));
    return own;
  }

  // Reads what is there, waiting a moment; false at the end of the output.
  absl::StatusOr<bool> Read(std::string* bytes) {
    bytes->clear();
    pollfd ready = {.fd = output_.get(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPollMillis) <= 0) return true;
    char buffer[16384];
    const ssize_t count = read(output_.get(), buffer, sizeof buffer);
    if (count < 0) return ErrnoStatus(errno, "reading a trial's output");
    bytes->assign(buffer, static_cast<size_t>(count));
    // What cannot be logged is still read.
    if (count > 0 && write(log_.get(), buffer, static_cast<size_t>(count)) < 0) return true;
    return count > 0;
  }

  absl::Status Terminate() { return child_->SignalGroup(SIGTERM); }

  absl::StatusOr<process::ExitInfo> Wait(bool is_terminated) {
    if (!is_terminated) return child_->Wait(1e9);
    auto exit = child_->Wait(kGraceSeconds);
    if (!absl::IsDeadlineExceeded(exit.status())) return exit;
    MUSTER_RETURN_IF_ERROR(child_->SignalGroup(SIGKILL));
    return child_->Wait(kGraceSeconds);
  }

 private:
  Descriptor log_, output_;
  std::unique_ptr<Child> child_;
};

Outcome Stopped(const OutputReader& reader) {
  return {.state = TrialState::kStopped, .has_value = reader.has_value(), .last = reader.last()};
}

class CommandObjective : public Objective {
 public:
  explicit CommandObjective(CommandSpec spec) : spec_(std::move(spec)) {}

  absl::StatusOr<Outcome> Run(const Trial& trial, const AddReport& report) override {
    const std::string log = TrialLog(spec_.log_folder, trial.number);
    MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> words, spec_.words(trial));
    MUSTER_ASSIGN_OR_RETURN(const auto process, Process::Start(std::move(words), trial, log));
    OutputReader reader(spec_.metric, trial, report);
    std::string bytes, why;
    bool is_told = false;
    while (true) {
      if (!is_told && (*spec_.stop || !why.empty())) {
        is_told = true;
        MUSTER_RETURN_IF_ERROR(process->Terminate());
      }
      // Processes that the trial has left may hold its output open.
      if (is_told) break;
      MUSTER_ASSIGN_OR_RETURN(const bool more, process->Read(&bytes));
      if (!more) break;
      MUSTER_ASSIGN_OR_RETURN(why, reader.Add(bytes));
    }
    MUSTER_ASSIGN_OR_RETURN(const process::ExitInfo exit, process->Wait(is_told));
    if (is_told && why.empty()) return absl::CancelledError("told to end");
    // Also if it has ended well, as programs do that save their state when they are told to end.
    if (is_told) return Stopped(reader);
    MUSTER_RETURN_IF_ERROR(reader.Finish());
    Outcome outcome = {.has_value = reader.has_value(), .last = reader.last()};
    if (!exit.ok()) {
      return absl::InternalError(
          StrCat(process::DescribeExit(exit), ReadLastLine(log), "; its output is in ", log));
    }
    if (!reader.has_value()) return reader.DescribeNoValue(log);
    return outcome;
  }

 private:
  const CommandSpec spec_;
};

}  // namespace

std::string TrialLog(const std::string& folder, int64_t trial) {
  return io::JoinPath(folder, absl::StrFormat("%04d.log", trial));
}

std::vector<std::pair<std::string, std::string>> TrialEnvironment(const Trial& trial) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"MUSTER_TRIAL", StrCat(trial.number)}};
  if (trial.origin.member < 0) return variables;
  const int64_t parent = trial.origin.parent;
  variables.emplace_back("MUSTER_PARENT", parent < 0 ? "" : StrCat(parent));
  return variables;
}

std::unique_ptr<Objective> NewCommandObjective(CommandSpec spec) {
  return std::make_unique<CommandObjective>(std::move(spec));
}

}  // namespace muster::tune
