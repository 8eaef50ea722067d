#include "muster/launch/ssh/ssh_launcher.h"

#include <cstdio>
#include <utility>

#include "muster/launch/ssh/reach.h"

namespace muster::launch::ssh {

using control::IncarnationId;
using Phase = job::TaskObservation::Phase;

absl::StatusOr<std::unique_ptr<SshLauncher>> SshLauncher::Create(local::LocalLauncherOptions local,
                                                                 const job::JobSpec& spec,
                                                                 Hosts hosts) {
  std::unique_ptr<SshLauncher> launcher(new SshLauncher(spec, std::move(hosts)));
  launcher->program_ = local.program;
  launcher->folder_ = local.folder;
  MUSTER_ASSIGN_OR_RETURN(launcher->started_, ReadStarted(local.folder));
  std::erase_if(launcher->started_, [&](const auto& each) {
    return each.second.place.host >= launcher->hosts_.all.size();
  });
  for (const auto& [task, started] : launcher->started_) {
    launcher->choice_.Restore(task, started.place);
  }
  launcher->port_ = local.coordinator_url.substr(local.coordinator_url.rfind(':') + 1);
  local.command = [self = launcher.get()](const control::StartRequest& request) {
    return self->CommandFor(request);
  };
  MUSTER_ASSIGN_OR_RETURN(launcher->reaches_, local::LocalLauncher::Create(std::move(local)));
  return launcher;
}

// Returns null if another incarnation was started after it, or none.
const StartedTask* SshLauncher::FindStarted(job::TaskId task, int64_t incarnation) const {
  const auto found = started_.find(task);
  const bool is_it = found != started_.end() && found->second.incarnation == incarnation;
  return is_it ? &found->second : nullptr;
}

std::vector<std::string> SshLauncher::CommandFor(const control::StartRequest& request) {
  const TaskPlace place = choice_.Choose(request.task, request.port_required, now());
  started_[request.task] = {
      .incarnation = request.incarnation, .place = place, .stays = request.port_required};
  // If this fails the task runs all the same; a later coordinator would then choose its host anew.
  if (const absl::Status written = WriteStarted(folder_, started_); !written.ok()) {
    std::fprintf(stderr, "muster: cannot write down the host of %s: %s\n",
                 job::TaskName(request.task).c_str(),
                 std::string(ToStd(written.message())).c_str());
  }
  std::vector<std::string> command = {program_,
                                      "reach",
                                      "--folder",
                                      folder_.path,
                                      "--task",
                                      job::TaskName(request.task),
                                      "--incarnation",
                                      StrCat(request.incarnation),
                                      "--host-number",
                                      StrCat(place.host),
                                      "--coordinator-port",
                                      port_,
                                      "--lease",
                                      StrCat(request.lease_seconds)};
  if (request.port > 0) command.insert(command.end(), {"--port", StrCat(request.port)});
  if (request.port_required) command.emplace_back("--port-required");
  if (const int gpus = request.process.gpus; gpus > 0) {
    command.insert(command.end(), {"--gpus", StrCat(gpus), "--first-gpu", StrCat(place.first_gpu)});
  }
  return command;
}

void SshLauncher::Start(const control::StartRequest& request) { reaches_->Start(request); }

std::string SshLauncher::GetPlace(job::TaskId task, int64_t incarnation) const {
  const StartedTask* const started = FindStarted(task, incarnation);
  return started == nullptr ? "" : StrCat("host ", hosts_.all[started->place.host].name);
}

// The agent does not report or obey, so its host is avoided for a while.
void SshLauncher::Kill(job::TaskId task, int64_t incarnation) {
  if (const StartedTask* const started = FindStarted(task, incarnation); started != nullptr) {
    choice_.Avoid(started->place.host, now());
  }
  reaches_->Kill(task, incarnation);
}

// Of an incarnation whose process here ended without its host's word nobody here knows whether it
// runs: the coordinator waits for its lease. One whose host was not reached does not run; if it can
// start on another host instead, that is a disruption.
std::vector<job::TaskObservation> SshLauncher::Observe() {
  std::vector<job::TaskObservation> seen = reaches_->Observe();
  for (job::TaskObservation& each : seen) {
    const IncarnationId id{each.id, each.incarnation};
    const bool has_ended = each.phase == Phase::kGone || each.phase == Phase::kEnded;
    if (has_ended && !reaches_->HasWrittenEnd(id)) {
      each.phase = Phase::kStarting;
    }
    if (each.phase != Phase::kEnded || !each.end.detail.starts_with(kCannotReach)) continue;
    const auto [missed, is_new] = missed_.try_emplace(id, false);
    if (is_new) {
      const StartedTask* const started = FindStarted(id.task, id.incarnation);
      if (started != nullptr) choice_.Avoid(started->place.host, now());
      const bool stays = started != nullptr && started->stays;
      missed->second = choice_.AnyGood(now()) && !stays;
    }
    each.end.disrupted = missed->second;
  }
  return seen;
}

}  // namespace muster::launch::ssh
