#include "muster/launch/ssh/reach.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

#include "muster/base/clock.h"
#include "muster/control/status_json.h"
#include "muster/files/file_systems.h"
#include "muster/launch/ssh/hosts.h"
#include "muster/launch/ssh/ssh_command.h"
#include "muster/net/listen.h"
#include "muster/process/child.h"
#include "muster/process/log_file.h"
#include "muster/process/output_log.h"

namespace muster::launch::ssh {
namespace {

using process::Descriptor;

constexpr uint64_t kMaxSecretBytes = 64 << 10;
constexpr size_t kReadBytes = 64 << 10;
constexpr double kOutputSeconds = 5;        // for the rest of the output, after ssh has ended
constexpr size_t kKeptLines = 5;            // of what ssh and the agent say
constexpr int64_t kSparedBytes = 16 << 20;  // of the disk, as agents do

// The files that the agent on the host gets, by their names in the bundle.
constexpr const char* kHostFiles[] = {"ca.pem", "server.pem", "server-key.pem", "client.pem",
                                      "client-key.pem"};

// The input of ssh: first a text, then files.
class Payload {
 public:
  explicit Payload(std::string text) : text_(std::move(text)) {}
  void Add(const std::string& path) { files_.push_back(path); }

  // Writes as much as the pipe takes now. Returns false if all is written, or if nobody reads.
  absl::StatusOr<bool> Write(int fd) {
    while (true) {
      if (sent_ == text_.size()) {
        MUSTER_ASSIGN_OR_RETURN(const bool more, Fill());
        if (!more) return false;
      }
      const ssize_t put = write(fd, text_.data() + sent_, text_.size() - sent_);
      if (put < 0 && errno == EAGAIN) return true;
      if (put < 0 && errno != EINTR) return false;
      sent_ += static_cast<size_t>(std::max<ssize_t>(put, 0));
    }
  }

 private:
  absl::StatusOr<bool> Fill() {
    text_.clear();
    sent_ = 0;
    while (text_.empty()) {
      if (!open_.valid()) {
        if (files_.empty()) return false;
        open_.Reset(open(files_.front().c_str(), O_RDONLY | O_CLOEXEC));
        if (!open_.valid()) return ErrnoStatus(errno, StrCat("cannot read ", files_.front()));
        files_.pop_front();
      }
      text_.resize(kReadBytes);
      const ssize_t got = read(open_.get(), text_.data(), text_.size());
      if (got < 0) return ErrnoStatus(errno, "cannot read a file for the host");
      text_.resize(static_cast<size_t>(got));
      if (got == 0) open_.Reset();
    }
    return true;
  }

  std::string text_;
  size_t sent_ = 0;
  std::deque<std::string> files_;
  Descriptor open_;
};

constexpr size_t kMaxLineBytes = size_t{64} << 10;  // the rest of a longer line is left out

// Reads what the host's side writes to stderr, line by line: lines of the script, of the agent and
// of ssh.
class HostWords {
 public:
  explicit HostWords(std::unique_ptr<process::LogFile> log) : log_(std::move(log)) {}

  void Take(std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\n') {
        if (line_.size() < kMaxLineBytes) line_ += c;
        continue;
      }
      ParseLine();
      line_.clear();
    }
  }
  bool started() const { return started_; }
  const std::string& end() const { return end_; }          // after kEndLine; "": none
  const std::string& failure() const { return failure_; }  // of the script itself
  std::string last() const { return absl::StrJoin(kept_, "\n"); }

 private:
  void ParseLine() {
    constexpr std::string_view kFailed = "muster-host: failed ";
    if (line_ == kStartedLine) {
      started_ = true;
    } else if (line_.starts_with(kEndLine)) {
      end_ = line_.substr(sizeof kEndLine - 1);
    } else if (line_.starts_with(kFailed)) {
      failure_ = line_.substr(kFailed.size());
    } else {
      kept_.push_back(line_);
      if (kept_.size() > kKeptLines) kept_.pop_front();
    }
    log_->Append(StrCat(line_, "\n"));
  }

  const std::unique_ptr<process::LogFile> log_;
  std::string line_;
  bool started_ = false;
  std::string end_, failure_;
  std::deque<std::string> kept_;
};

absl::StatusOr<size_t> GetSize(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const auto info, files::OpenFileSystems()->Stat(path));
  return static_cast<size_t>(info.size);
}

class Reacher {
 public:
  explicit Reacher(const ReachOptions& options) : options_(options) {}

  absl::Status Run() {
    MUSTER_ASSIGN_OR_RETURN(hosts_, ReadHosts(options_.folder));
    if (options_.host >= hosts_.all.size())
      return absl::InvalidArgumentError("there is no such host");
    MUSTER_ASSIGN_OR_RETURN(Payload payload, MakePayload());
    MUSTER_RETURN_IF_ERROR(Connect());
    MUSTER_RETURN_IF_ERROR(Speak(payload));
    return End();
  }

 private:
  const Host& host() const { return hosts_.all[options_.host]; }

  std::vector<std::string> AgentFlags() const {
    const auto port = static_cast<uint16_t>(options_.coordinator_port);
    std::vector<std::string> flags = {
        "--task",        job::TaskName(options_.id.task),
        "--incarnation", StrCat(options_.id.incarnation),
        "--coordinator", StrCat("https://", net::internal::HostPort(host().coordinator, port)),
        "--host",        host().address,
        "--lease",       StrCat(options_.lease_seconds),
        "--also-stdout"};
    if (options_.port > 0) flags.insert(flags.end(), {"--port", StrCat(options_.port)});
    if (options_.port_required) flags.emplace_back("--port-required");
    if (options_.gpus > 0) {
      std::vector<int> gpus;
      for (int i = 0; i < options_.gpus; ++i) gpus.push_back(options_.first_gpu + i);
      flags.push_back(StrCat("--gpus=", absl::StrJoin(gpus, ",")));
    }
    return flags;
  }

  absl::StatusOr<Payload> MakePayload() {
    AgentScript script{.job = io::Basename(options_.folder.path),
                       .task = options_.id.task,
                       .incarnation = options_.id.incarnation,
                       .program = host().muster,
                       .flags = AgentFlags()};
    std::vector<std::string> paths;
    const auto add = [&](const std::string& name, const std::string& path) -> absl::Status {
      MUSTER_ASSIGN_OR_RETURN(const size_t bytes, GetSize(path));
      script.files.push_back({name, bytes});
      paths.push_back(path);
      return absl::OkStatus();
    };
    MUSTER_RETURN_IF_ERROR(add("token", options_.folder.token()));
    MUSTER_RETURN_IF_ERROR(add("data_key", options_.folder.data_key()));
    for (const char* const name : kHostFiles) {
      MUSTER_RETURN_IF_ERROR(
          add(name, io::JoinPath(HostFolder(options_.folder, options_.host), name)));
    }
    if (host().muster.empty()) MUSTER_RETURN_IF_ERROR(add(kProgramFile, "/proc/self/exe"));
    if (const std::string staged = StagedArchive(options_.folder);
        access(staged.c_str(), F_OK) == 0) {
      MUSTER_RETURN_IF_ERROR(add(kStagedFile, staged));
    }
    std::string text = ScriptFor(script);
    script_bytes_ = text.size();
    Payload payload(std::move(text));
    for (const std::string& path : paths) payload.Add(path);
    return payload;
  }

  absl::Status Connect() {
    process::OutputLogOptions log;
    log.file.path = options_.folder.task_log(options_.id.task);
    log.file.spared_bytes = kSparedBytes;
    MUSTER_ASSIGN_OR_RETURN(output_, process::OutputLog::Open(log, &clock_));
    MUSTER_ASSIGN_OR_RETURN(
        auto file, process::LogFile::Open({.path = options_.folder.agent_log(options_.id.task)}));
    words_ = std::make_unique<HostWords>(std::move(file));
    int input[2], said[2];
    if (pipe2(input, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
    const Descriptor ssh_input(input[0]);
    input_.Reset(input[1]);
    if (pipe2(said, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
    said_.Reset(said[0]);
    const Descriptor ssh_stderr(said[1]);
    fcntl(input_.get(), F_SETFL, O_NONBLOCK);
    fcntl(said_.get(), F_SETFL, O_NONBLOCK);
    process::ChildSpec spec;
    spec.argv = RunScript(hosts_.ssh, host().name, script_bytes_);
    spec.environment = process::CurrentEnvironment();
    spec.stdin_fd = ssh_input.get();
    spec.stdout_fd = output_->writer_fd();
    spec.stderr_fd = ssh_stderr.get();
    std::signal(SIGPIPE, SIG_IGN);  // ssh may end before it has read all
    MUSTER_ASSIGN_OR_RETURN(ssh_, process::Child::Start(spec));
    output_->CloseWriter();
    return absl::OkStatus();
  }

  void Listen() {
    std::string buffer(kReadBytes, '\0');
    ssize_t got = 0;
    while ((got = read(said_.get(), buffer.data(), buffer.size())) > 0) {
      words_->Take({buffer.data(), static_cast<size_t>(got)});
    }
  }

  // Waits until ssh has ended. The input stays open after all is written: closing it would end the
  // agent.
  absl::Status Speak(Payload& payload) {
    bool writing = true;
    while (true) {
      pollfd polled[] = {{.fd = ssh_->pidfd(), .events = POLLIN, .revents = 0},
                         {.fd = said_.get(), .events = POLLIN, .revents = 0},
                         {.fd = writing ? input_.get() : -1, .events = POLLOUT, .revents = 0}};
      if (poll(polled, 3, -1) < 0 && errno != EINTR) return ErrnoStatus(errno, "cannot poll");
      if (polled[1].revents != 0) Listen();
      if (polled[0].revents != 0) break;
      if (polled[1].revents == POLLHUP) said_.Reset();
      if (polled[2].revents != 0) {
        MUSTER_ASSIGN_OR_RETURN(writing, payload.Write(input_.get()));
      }
    }
    if (said_.valid()) Listen();
    return absl::OkStatus();
  }

  // Writes down what is certain about the task's end.
  absl::Status End() {
    MUSTER_ASSIGN_OR_RETURN(const process::ExitInfo exit, ssh_->Wait(kOutputSeconds));
    const absl::Status whole = output_->Finish(kOutputSeconds);
    std::optional<job::TaskEnd> end;
    if (!words_->end().empty()) {
      end = GetEnd(words_->end());
    } else if (!words_->failure().empty()) {
      end = job::TaskEnd{.detail = StrCat("cannot start on host ", host().name, ": ",
                                          words_->failure(), LastWord())};
    } else if (!words_->started() && exit.code == kSshFailed) {
      end = job::TaskEnd{
          .lost = true,
          .detail = StrCat(kCannotReach, DescribeSshFailure(host().name, words_->last()))};
    } else if (!words_->started() && exit.code != 0) {
      end =
          job::TaskEnd{.detail = StrCat("cannot start on host ", host().name,
                                        ": its shell: ", process::DescribeExit(exit), LastWord())};
    }
    if (end) {
      MUSTER_RETURN_IF_ERROR(control::WriteEnd(options_.folder.path, options_.id, *end));
    }
    return whole;
  }

  std::string LastWord() const {
    const std::string last = words_->last();
    const std::string line = last.substr(last.rfind('\n') + 1);
    return line.empty() ? "" : StrCat(" (", line, ")");
  }

  // Parses "0 {...}", the agent's exit code and the end that it wrote, or "137 ", if it wrote none.
  job::TaskEnd GetEnd(const std::string& text) const {
    const std::string code = text.substr(0, text.find(' '));
    const auto json = formats::ParseJsonObject(text.substr(code.size()), "end");
    if (json.ok()) {
      if (auto end = control::EndFromJson(*json, "end"); end.ok()) return *std::move(end);
    }
    return {.lost = true,
            .detail = StrCat("its agent on host ", host().name, " ended first: exit code ", code,
                             LastWord())};
  }

  const ReachOptions options_;
  const SystemClock clock_;
  Hosts hosts_;
  size_t script_bytes_ = 0;
  std::unique_ptr<process::OutputLog> output_;
  std::unique_ptr<HostWords> words_;
  Descriptor input_, said_;
  std::unique_ptr<process::Child> ssh_;
};

}  // namespace

absl::Status Reach(const ReachOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const auto claim,
                          control::IncarnationClaim::Take(options.folder.path, options.id));
  if (!claim.has_value()) return absl::OkStatus();  // another one has it, or nobody may
  return Reacher(options).Run();
}

}  // namespace muster::launch::ssh
