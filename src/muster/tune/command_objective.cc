#include "muster/tune/command_objective.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/process/child.h"

namespace muster::tune {
namespace {

using process::Child;
using process::Descriptor;

constexpr int kPollMillis = 200;
// Between SIGTERM and SIGKILL.
constexpr double kGraceSeconds = 30;
constexpr size_t kLongestLine = size_t{1} << 20;

// Takes a trial's output, line by line.
class OutputReader {
 public:
  OutputReader(const std::string& metric, const AddReport& report)
      : metric_(metric), report_(report) {}

  // Returns why the trial must stop, or "".
  absl::StatusOr<std::string> Add(std::string_view bytes) {
    std::string why;
    line_ += bytes;
    for (size_t end = line_.find('\n'); end != line_.npos; end = line_.find('\n')) {
      MUSTER_ASSIGN_OR_RETURN(std::string stop, AddLine(std::string_view(line_).substr(0, end)));
      if (why.empty()) why = std::move(stop);
      line_.erase(0, end + 1);
    }
    if (line_.size() > kLongestLine) line_.clear();
    return why;
  }

  // A last line without an end.
  absl::Status Finish() { return AddLine(std::exchange(line_, "")).status(); }

  bool has_value() const { return reports_ > 0; }
  const Report& last() const { return last_; }
  const std::string& last_line() const { return last_line_; }

 private:
  absl::StatusOr<std::string> AddLine(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == line.npos) return "";
    last_line_ = line.substr(0, 200);
    if (line.front() != '{') return "";
    const auto json = formats::ParseJsonObject(line, "a trial's line");
    if (!json.ok()) return "";
    const auto value = json->find(metric_);
    if (value == json->end() || !(value->is_number() || value->is_null())) return "";
    ++reports_;
    last_ = {.resource = Int(*json, {"epoch", "step", "global_step"}, reports_),
             .value = value->is_number() ? value->get<double>() : std::nan(""),
             .records = static_cast<uint64_t>(Int(*json, {"records", "examples"}, 0)),
             .step = Int(*json, {"step", "global_step"}, 0)};
    return report_(last_);
  }

  // The first of these members that is a number.
  static int64_t Int(const Json& json, std::initializer_list<const char*> names, int64_t fallback) {
    for (const char* const name : names) {
      const auto found = json.find(name);
      if (found == json.end() || !found->is_number()) continue;
      const auto value = found->get<double>();
      if (value >= 0 && value < 9e15) return static_cast<int64_t>(value);
    }
    return fallback;
  }

  const std::string& metric_;
  const AddReport& report_;
  std::string line_, last_line_;
  int64_t reports_ = 0;
  Report last_;
};

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

// ": ", with the last line of the log: the error that a program prints before it ends.
std::string LastLine(const std::string& log) {
  constexpr off_t kTail = 4096;
  const Descriptor file(open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return "";
  const off_t size = lseek(file.get(), 0, SEEK_END);
  char buffer[kTail];
  const ssize_t count = pread(file.get(), buffer, sizeof buffer, size > kTail ? size - kTail : 0);
  std::string_view text(buffer, count > 0 ? static_cast<size_t>(count) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.empty()) return "";
  return StrCat(": ", text.substr(text.rfind('\n') + 1));
}

class CommandObjective : public Objective {
 public:
  explicit CommandObjective(CommandSpec spec) : spec_(std::move(spec)) {}

  absl::StatusOr<Outcome> Run(const Trial& trial, const AddReport& report) override {
    const std::string log = TrialLog(spec_.log_folder, trial.number);
    MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> words, spec_.words(trial));
    MUSTER_ASSIGN_OR_RETURN(const auto process, Process::Start(std::move(words), trial, log));
    OutputReader reader(spec_.metric, report);
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
      MUSTER_ASSIGN_OR_RETURN(std::string stop, reader.Add(bytes));
      if (why.empty()) why = std::move(stop);
    }
    MUSTER_ASSIGN_OR_RETURN(const process::ExitInfo exit, process->Wait(is_told));
    if (is_told && why.empty()) return absl::CancelledError("told to end");
    MUSTER_RETURN_IF_ERROR(reader.Finish());
    Outcome outcome = {.has_value = reader.has_value(), .last = reader.last()};
    if (is_told && !exit.ok()) {
      outcome.state = TrialState::kStopped;
      return outcome;
    }
    if (!exit.ok()) {
      return absl::InternalError(
          StrCat(process::DescribeExit(exit), LastLine(log), "; its output is in ", log));
    }
    if (!reader.has_value()) {
      return absl::InvalidArgumentError(StrCat("no line of its output is JSON with \"",
                                               spec_.metric, "\": its last line is '",
                                               reader.last_line(), "'; its output is in ", log));
    }
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
