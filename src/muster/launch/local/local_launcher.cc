#include "muster/launch/local/local_launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/control/coordinator.h"
#include "muster/process/deadline.h"
#include "muster/process/memory_limit.h"
#include "muster/process/pidfd.h"
#include "muster/process/process_tree.h"

namespace muster::launch::local {
namespace {

using control::IncarnationId;
using control::IncarnationMark;
using Phase = job::TaskObservation::Phase;

constexpr int kFirstInherited = 3;  // of an agent's descriptors; it need not know of them

process::Descriptor OpenPid(int pid) { return process::Descriptor(process::OpenPidfd(pid)); }

process::Descriptor Duplicate(int fd) { return process::Descriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

}  // namespace

absl::StatusOr<std::unique_ptr<LocalLauncher>> LocalLauncher::Create(LocalLauncherOptions options) {
  std::unique_ptr<LocalLauncher> launcher(new LocalLauncher(std::move(options)));
  launcher->wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!launcher->wake_.valid()) return ErrnoStatus(errno, "cannot make an eventfd");
  MUSTER_ASSIGN_OR_RETURN(const auto marks,
                          control::ListIncarnations(launcher->options_.folder.path));
  for (const IncarnationId& id : marks) launcher->agents_[id];
  launcher->watcher_ =
      std::jthread([self = launcher.get()](const std::stop_token& stop) { self->Watch(stop); });
  return launcher;
}

LocalLauncher::~LocalLauncher() {
  watcher_.request_stop();
  Wake();
}

void LocalLauncher::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);  // full is awake too
}

void LocalLauncher::TellNews() {
  news_ = true;
  Wake();
}

std::vector<std::string> LocalLauncher::CommandFor(const control::StartRequest& request) const {
  std::vector<std::string> command = {options_.program, "agent",
                                      "--folder",       options_.folder.path,
                                      "--task",         job::TaskName(request.task),
                                      "--incarnation",  StrCat(request.incarnation),
                                      "--coordinator",  options_.coordinator_url,
                                      "--lease",        StrCat(request.lease_seconds)};
  if (request.port > 0) {
    command.insert(command.end(), {"--port", StrCat(request.port)});
    if (request.port_required) command.emplace_back("--port-required");
  }
  const auto place = options_.devices.tasks.find(request.task);
  if (place == options_.devices.tasks.end()) return command;
  if (const auto& cpus = place->second.cpus; !cpus.empty()) {
    command.insert(command.end(), {"--cpus", absl::StrJoin(cpus, ",")});
  }
  if (const auto& gpus = place->second.gpus) {
    command.push_back(gpus->empty() ? "--no-gpus" : StrCat("--gpus=", *gpus));
  }
  return command;
}

absl::Status LocalLauncher::Spawn(const control::StartRequest& request, Agent* agent) {
  const std::string log_path = options_.folder.agent_log(request.task);
  const process::Descriptor log(
      open(log_path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600));
  if (!log.valid()) return ErrnoStatus(errno, StrCat("cannot open ", log_path));
  process::ChildSpec spec;
  spec.argv = options_.command ? options_.command(request) : CommandFor(request);
  spec.environment = process::CurrentEnvironment();
  spec.stdout_fd = spec.stderr_fd = log.get();
  spec.group = process::ChildSpec::Group::kOwnSession;
  spec.parent_death_signal = 0;  // agents outlive a coordinator for a lease
  for (int to = kFirstInherited; const process::GpuClaim& claim : options_.devices.gpus) {
    if (claim.lock.valid()) spec.inherited.push_back({claim.lock.get(), to++});
  }
  MUSTER_ASSIGN_OR_RETURN(agent->child, process::Child::Start(spec));
  agent->pid = agent->child->pid();
  return absl::OkStatus();
}

void LocalLauncher::Start(const control::StartRequest& request) {
  const IncarnationId id{request.task, request.incarnation};
  const auto [found, is_new] = agents_.try_emplace(id);
  Agent& agent = found->second;
  if (!is_new) return;
  const auto mark = control::LookAtIncarnation(options_.folder.path, id);
  if (mark.ok() && mark->state != IncarnationMark::State::kNone) return;
  const absl::Status status = mark.ok() ? Spawn(request, &agent) : mark.status();
  if (!status.ok()) {
    agent.ended = true;
    agent.end = job::TaskEnd{.detail = StrCat("cannot start: ", ToStd(status.message()))};
    (void)control::ForbidIncarnation(options_.folder.path, id);
    return TellNews();
  }
  {
    const MutexLock lock(&mutex_);
    watched_.push_back(Duplicate(agent.child->pidfd()));
  }
  Wake();
}

void LocalLauncher::Kill(job::TaskId task, int64_t incarnation) {
  const IncarnationId id{task, incarnation};
  Agent& agent = agents_[id];
  if (agent.ended) return;
  (void)control::ForbidIncarnation(options_.folder.path, id);
  if (agent.child != nullptr) {
    (void)agent.child->Signal(SIGKILL);
  } else if (const auto mark = control::LookAtIncarnation(options_.folder.path, id);
             mark.ok() && mark->state == IncarnationMark::State::kHeld && mark->pid > 0) {
    kill(mark->pid, SIGKILL);
  }
  TellNews();
}

// An agent that has ended left its task's end in writing, or its task was killed with it and what
// that had started is to be ended here.
// `how` it ended, "" when that is not known.
void LocalLauncher::RecordEnd(const IncarnationId& id, Agent& agent, const std::string& how) {
  const std::string& folder = options_.folder.path;
  (void)control::ForbidIncarnation(folder, id);
  if (auto end = control::ReadEnd(folder, id); end.ok()) {
    agent.end = *std::move(end);
    agent.written = true;
  } else {
    (void)process::EndMarked(StrCat(control::kMarkVariable, "=", control::GetMark(folder, id)),
                             {.grace_seconds = 0});
    if (agent.pid > 0) process::MemoryLimit::RemoveLeft(control::GetMemoryGroup(id), agent.pid);
    if (!how.empty()) {
      agent.end =
          job::TaskEnd{.lost = true,
                       .detail = StrCat("its agent ended first: ", how,
                                        " (its log: ", options_.folder.agent_log(id.task), ")")};
    }
  }
  agent.ended = true;
  agent.child.reset();
  agent.adopted.Reset();
}

void LocalLauncher::LookAt(const IncarnationId& id, Agent& agent) {
  if (agent.ended) return;
  if (agent.child != nullptr) {
    const auto exit = agent.child->Wait(0);
    if (absl::IsDeadlineExceeded(exit.status())) return;
    const auto mark = control::LookAtIncarnation(options_.folder.path, id);
    // Another process is this incarnation's agent: the one that was started here came second.
    if (mark.ok() && mark->state == IncarnationMark::State::kHeld) {
      agent.child.reset();
      return LookAt(id, agent);
    }
    return RecordEnd(id, agent, exit.ok() ? process::DescribeExit(*exit) : "");
  }
  const auto mark = control::LookAtIncarnation(options_.folder.path, id);
  if (!mark.ok()) return;  // not known, so not ended
  if (mark->state == IncarnationMark::State::kEnded) return RecordEnd(id, agent, "");
  if (mark->state == IncarnationMark::State::kHeld && !agent.adopted.valid()) {
    agent.pid = mark->pid;
    agent.adopted = OpenPid(mark->pid);
    const MutexLock lock(&mutex_);
    if (agent.adopted.valid()) watched_.push_back(Duplicate(agent.adopted.get()));
    Wake();
  }
}

bool LocalLauncher::HasWrittenEnd(const IncarnationId& id) const {
  const auto agent = agents_.find(id);
  return agent != agents_.end() && agent->second.written;
}

void LocalLauncher::WaitForEnds(double seconds) {
  const process::Deadline deadline = process::Deadline::After(seconds);
  std::vector<process::Descriptor> running;
  {
    const MutexLock lock(&mutex_);
    for (const auto& fd : watched_) running.push_back(Duplicate(fd.get()));
  }
  for (const auto& agent : running) {
    const int fd = agent.get();
    process::PollReadable(&fd, 1, deadline);
  }
}

// Of a task's incarnations that have ended, only the last one matters.
void LocalLauncher::Forget() {
  for (auto it = agents_.begin(); it != agents_.end();) {
    const auto next = std::next(it);
    const bool is_old = next != agents_.end() && next->first.task == it->first.task;
    if (is_old && it->second.ended) agents_.erase(it);
    it = next;
  }
}

std::vector<job::TaskObservation> LocalLauncher::Observe() {
  std::vector<job::TaskObservation> seen;
  for (auto& [id, agent] : agents_) {
    LookAt(id, agent);
    job::TaskObservation each{.id = id.task, .incarnation = id.incarnation};
    each.phase = !agent.ended ? Phase::kStarting : agent.end ? Phase::kEnded : Phase::kGone;
    if (agent.end) each.end = *agent.end;
    seen.push_back(std::move(each));
  }
  Forget();
  return seen;
}

// Waits for agents to end. It has duplicates of their descriptors, so that no agent's object is
// shared between threads.
void LocalLauncher::Watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> polled = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    {
      const MutexLock lock(&mutex_);
      for (const auto& fd : watched_) {
        polled.push_back({.fd = fd.get(), .events = POLLIN, .revents = 0});
      }
    }
    if (poll(polled.data(), polled.size(), -1) <= 0) continue;
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof count);
    bool any_ended = news_.exchange(false);
    {
      const MutexLock lock(&mutex_);
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents == 0) continue;
        any_ended = true;
        std::erase_if(watched_, [&](const auto& fd) { return fd.get() == polled[i].fd; });
      }
    }
    if (any_ended) options_.on_change();
  }
}

}  // namespace muster::launch::local
