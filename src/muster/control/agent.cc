#include "muster/control/agent.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/base/clock.h"
#include "muster/base/utf8.h"
#include "muster/control/agent_link.h"
#include "muster/control/agent_task.h"
#include "muster/control/coordinator.h"
#include "muster/control/job_access.h"
#include "muster/control/lease_watch.h"
#include "muster/control/task_certificates.h"
#include "muster/files/file_systems.h"
#include "muster/io/file_system.h"
#include "muster/process/deadline.h"
#include "muster/process/ports.h"
#include "muster/process/process_tree.h"

namespace muster::control {
namespace {

using State = AgentReport::State;

constexpr double kLookSeconds = kAgentLookSeconds;  // between two looks at a task that runs
// For what a killed agent left running to let go of the task's port, and between two tries.
constexpr double kPortSeconds = 20, kPortLookSeconds = 0.1;
constexpr size_t kLastLineBytes = 300;
constexpr uint64_t kMaxUrlBytes = 4096;

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "muster agent: %s\n", std::string(ToStd(status.message())).c_str());
}

// A long line is cut after a word, if it has any, and says so.
std::string ShortenLine(const std::string& line) {
  constexpr std::string_view kCut = " ... (cut)";
  if (line.size() <= kLastLineBytes) return line;
  const size_t room = kLastLineBytes - kCut.size();
  const size_t space = line.rfind(' ', room);
  const bool has_word = space != line.npos && space > room / 2;
  return StrCat(has_word ? line.substr(0, space)
                         : line.substr(0, Utf8PrefixSize(std::string_view(line).substr(0, room))),
                kCut);
}

// The last line with a word in it.
std::string GetLastLine(const std::vector<std::string>& lines) {
  const auto has_words = [](const std::string& line) {
    return line.find_first_not_of(" \t\r") != std::string::npos;
  };
  const auto last = std::find_if(lines.rbegin(), lines.rend(), has_words);
  return last == lines.rend() ? "" : ShortenLine(*last);
}

// What a shell exits with that cannot start a program; -1 for failures that may pass.
int ShellCode(const absl::Status& failure) {
  if (absl::IsNotFound(failure)) return job::kNoProgramCode;
  if (absl::IsPermissionDenied(failure)) return job::kNotExecutableCode;
  return -1;
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
  absl::Status GetCertificates();
  absl::Status HoldPort();
  absl::Status HoldWishedPort();
  job::TaskEnd RunTask();
  std::optional<StartOrder> WaitForStart();
  void WaitForNews(double seconds) const;
  job::TaskEnd WatchTask();
  std::optional<job::TaskEnd> LookAtTask(double seconds);
  job::TaskEnd EndWithLease();
  void Say(State state, const std::string& said, bool urgent);
  void Diagnose();
  void Finish(job::TaskEnd end);
  bool lost();
  std::string LostText();
  void Pause();

  const AgentOptions options_;
  const SystemClock clock_;
  AgentReport report_;
  std::optional<process::HeldPort> port_;
  std::unique_ptr<process::ProcessTree> tree_;
  std::unique_ptr<AgentLink> link_;
  std::unique_ptr<AgentTask> task_;    // once it is started
  std::unique_ptr<LeaseWatch> lease_;  // last: its thread uses link_ and tree_
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
  lease_ = std::make_unique<LeaseWatch>(
      LeaseWatchOptions{
          .listen =
              [this] {
                return LeaseWatchOptions::Silence{link_->silent_seconds(), link_->lease_seconds()};
              },
          .end = [this] { (void)tree_->Stop({.grace_seconds = kLostGraceSeconds}); },
          // Elsewhere the coordinator relies on the lease, also if this machine was suspended.
          .forgives = !options_.bundle,
          .look_seconds = kAgentLookSeconds},
      &clock_);
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

// They may take a while: its coordinator may be just starting, elsewhere.
absl::Status Agent::GetCertificates() {
  if (!options_.fetches_certificates) return absl::OkStatus();
  Say(State::kWaiting, "waits for its certificates", /*urgent=*/false);
  std::string url = options_.coordinator_url;
  MUSTER_ASSIGN_OR_RETURN(auto http, ClientOptions(options_.folder, url));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<net::HttpClient> coordinator,
                          net::HttpClient::Create(std::move(http)));
  while (true) {
    const absl::Status fetched = FetchCertificates(*coordinator, options_.folder, options_.host);
    const bool may_come = absl::IsUnavailable(fetched) || absl::IsDeadlineExceeded(fetched);
    if (!may_come || link_->orders().stop || lost()) return fetched;
    if (auto found = FindCoordinator(url); found != nullptr) coordinator = std::move(found);
    WaitForNews(kLookSeconds);
  }
}

// The wished port, or where that is not required, any.
absl::Status Agent::HoldPort() {
  if (options_.port > 0) {
    const absl::Status held = HoldWishedPort();
    if (!held.ok() && options_.port_required) return held;
  }
  if (!port_) {
    auto held = process::HeldPort::Any({});
    MUSTER_RETURN_IF_ERROR(held.status());
    port_.emplace(*std::move(held));
  }
  report_.address = StrCat(options_.host, ":", port_->port());
  return absl::OkStatus();
}

// What a killed agent left behind may have the port for a moment. Where others know the task by its
// port, that is waited for.
absl::Status Agent::HoldWishedPort() {
  const auto deadline = process::Deadline::After(options_.port_required ? kPortSeconds : 0);
  bool is_told = false;
  while (true) {
    auto held = process::HeldPort::Fixed(options_.port, {});
    if (held.ok()) {
      port_.emplace(*std::move(held));
      return absl::OkStatus();
    }
    const bool is_taken = absl::IsFailedPrecondition(held.status());
    if (!is_taken || deadline.expired() || link_->orders().stop || lost()) return held.status();
    if (!is_told) Say(State::kWaiting, StrCat("waits for its port ", options_.port), true);
    is_told = true;
    WaitForNews(kPortLookSeconds);
  }
}

void Agent::Say(State state, const std::string& said, bool urgent) {
  report_.state = state;
  report_.said = said;
  link_->Tell(report_, urgent);
}

// The watch ends the task by itself; this is for what its agent does then.
bool Agent::lost() {
  if (!options_.bundle && link_->orders().pause) {
    // The coordinator told it to pause and is stopped itself.
    const auto coordinator = LivingCoordinator(options_.folder);
    const auto stat = coordinator ? process::ReadStat(*coordinator) : std::nullopt;
    if (stat && stat->state == 'T') lease_->Forgive();
  }
  return lease_->over();
}

std::string Agent::LostText() {
  const std::string why = link_->last_error();
  return StrCat("the coordinator was silent for ", job::PrintDuration(link_->lease_seconds()),
                why.empty() ? "" : StrCat(": ", why));
}

void Agent::WaitForNews(double seconds) const {
  const int news = link_->news_fd();
  process::PollReadable(&news, 1, process::Deadline::After(seconds));
  link_->ClearNews();
}

// None: it was told to stop, or lost its coordinator, before it was told to start.
std::optional<StartOrder> Agent::WaitForStart() {
  while (true) {
    const AgentOrders orders = link_->orders();
    if (orders.stop || lost()) return std::nullopt;
    if (orders.start) return orders.start;
    WaitForNews(kLookSeconds);
  }
}

// What the task is doing, before it is ended for want of a sign of life.
void Agent::Diagnose() {
  if (!report_.diagnosis.empty()) return;
  Say(State::kRunning, "gave no sign of life: it is being looked at", /*urgent=*/false);
  report_.diagnosis = task_->Diagnose();
}

// Its end, if that comes within so many seconds or before there is news.
std::optional<job::TaskEnd> Agent::LookAtTask(double seconds) {
  const int fds[] = {task_->pidfd(), link_->news_fd()};
  process::PollReadable(fds, 2, process::Deadline::After(seconds));
  link_->ClearNews();
  return task_->FindEnd();
}

// Until the order is withdrawn, or there is another reason to continue.
void Agent::Pause() {
  task_->Signal(SIGSTOP);
  Say(State::kRunning, kPausedText, /*urgent=*/true);
  while (true) {
    const AgentOrders orders = link_->orders();
    if (!orders.pause || orders.stop || lost()) break;
    // A part of a lease, so that lost() sees a coordinator that is stopped before that is over.
    if (LookAtTask(std::min(kLookSeconds, link_->lease_seconds() / 4))) break;  // it was killed
  }
  task_->Signal(SIGCONT);
  task_->Forgive();
  Say(State::kRunning, "runs", /*urgent=*/true);
}

// The watch has ended the task or is about to. What was started at that moment goes as well.
job::TaskEnd Agent::EndWithLease() {
  lease_->WaitForEnd();
  job::TaskEnd end = task_->Stop(kLostGraceSeconds);
  end.detail = LostText();
  end.disrupted = options_.bundle;  // the network's, or the other machine's
  return end;
}

job::TaskEnd Agent::WatchTask() {
  while (true) {
    if (const auto end = LookAtTask(kLookSeconds)) {
      if (lease_->ends()) return EndWithLease();
      // What it started goes with it.
      (void)tree_->Stop({.grace_seconds = std::min(kLostGraceSeconds, link_->lease_seconds())});
      return *end;
    }
    tree_->ReapOrphans();
    const AgentOrders orders = link_->orders();
    if (orders.stop) {
      if (orders.diagnose) Diagnose();
      Say(State::kRunning, StrCat("stops: ", orders.stop_reason), /*urgent=*/false);
      lease_->Release();  // it has its whole grace, also if the coordinator is not heard any more
      return task_->Stop(orders.grace_seconds);
    }
    if (orders.pause) {
      Pause();
      continue;
    }
    if (lost()) return EndWithLease();
    if (const std::string why = task_->WhyLifeless(link_->lease_seconds()); !why.empty()) {
      job::TaskEnd end = task_->Stop(/*grace_seconds=*/0);
      end.detail = why;
      return end;
    }
    task_->Measure(&report_);
    Say(State::kRunning, "runs", /*urgent=*/false);
  }
}

job::TaskEnd Agent::RunTask() {
  absl::Status ready = GetCertificates();
  if (ready.ok()) ready = HoldPort();
  if (!ready.ok()) return {.detail = StrCat("cannot start: ", ToStd(ready.message()))};
  Say(State::kWaiting, "waits for the others", /*urgent=*/true);
  const auto order = WaitForStart();
  if (!order) {
    const AgentOrders orders = link_->orders();
    return {.lost = true, .detail = orders.stop ? orders.stop_reason : LostText()};
  }
  auto task = AgentTask::Start(options_, *order, tree_.get(), &clock_);
  if (!task.ok()) {
    return {.exit_code = ShellCode(task.status()),
            .detail = StrCat("cannot start: ", ToStd(task.status().message()))};
  }
  task_ = *std::move(task);
  report_.child_pid = task_->pid();
  Say(State::kRunning, "runs", /*urgent=*/true);
  return WatchTask();
}

// In writing first, so that the end is known whoever lives; then it is told, and told again until
// that is written down too or nobody is there.
void Agent::Finish(job::TaskEnd end) {
  lease_->Release();
  if (task_ != nullptr) {
    report_.last_lines = task_->FinishOutput(report_.diagnosis);
    if (!end.succeeded()) end.last_line = GetLastLine(report_.last_lines);
  }
  port_.reset();
  if (const absl::Status written = WriteEnd(options_.folder.path, options_.id, end);
      !written.ok()) {
    Complain(written);
  }
  if (task_ != nullptr) task_->MeasureLast(&report_);  // its last words
  report_.work.reset();
  report_.end = end;
  Say(State::kEnded, end.Describe(), /*urgent=*/true);
  while (!link_->orders().end_taken && !lost()) WaitForNews(kLookSeconds);
}

absl::Status Agent::Run() {
  MUSTER_RETURN_IF_ERROR(Prepare());
  job::TaskEnd end = RunTask();
  // Before the end is told: nobody waits for this process afterwards.
  if (task_ != nullptr) end.out_of_memory = task_->ReleaseMemory();
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
