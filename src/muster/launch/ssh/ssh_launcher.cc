#include "muster/launch/ssh/ssh_launcher.h"

#include <utility>

#include "muster/job/pod_template.h"
#include "muster/launch/ssh/reach.h"

namespace muster::launch::ssh {

using control::IncarnationId;
using Phase = job::TaskObservation::Phase;

absl::StatusOr<std::unique_ptr<SshLauncher>> SshLauncher::Create(local::LocalLauncherOptions local,
                                                                 const job::JobSpec& spec,
                                                                 Hosts hosts) {
  std::unique_ptr<SshLauncher> launcher(new SshLauncher(spec, std::move(hosts)));
  launcher->program_ = local.program;
  launcher->folder_ = local.folder.path;
  launcher->port_ = local.coordinator_url.substr(local.coordinator_url.rfind(':') + 1);
  local.command = [self = launcher.get()](const control::StartRequest& request) {
    return self->CommandFor(request);
  };
  MUSTER_ASSIGN_OR_RETURN(launcher->reaches_, local::LocalLauncher::Create(std::move(local)));
  return launcher;
}

// The GPUs of a host are dealt in the order of its tasks.
int SshLauncher::FirstGpu(job::TaskId task, size_t host) const {
  int first = 0;
  for (const auto& [type, replica] : spec_.replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    for (int i = 0; process.ok() && i < replica.replicas; ++i) {
      const job::TaskId other{type, i};
      if (other < task && choice_.GetHost(other) == host) first += process->gpus;
    }
  }
  return first;
}

std::vector<std::string> SshLauncher::CommandFor(const control::StartRequest& request) {
  const size_t host = choice_.Choose(request.task, request.port_required, now());
  places_[{request.task, request.incarnation}] = host;
  if (request.port_required) staying_.insert(request.task);
  std::vector<std::string> command = {program_,
                                      "reach",
                                      "--folder",
                                      folder_,
                                      "--task",
                                      job::TaskName(request.task),
                                      "--incarnation",
                                      StrCat(request.incarnation),
                                      "--host-number",
                                      StrCat(host),
                                      "--coordinator-port",
                                      port_,
                                      "--lease",
                                      StrCat(request.lease_seconds)};
  if (request.port > 0) command.insert(command.end(), {"--port", StrCat(request.port)});
  if (request.port_required) command.emplace_back("--port-required");
  if (const int gpus = request.process.gpus; gpus > 0) {
    command.insert(command.end(),
                   {"--gpus", StrCat(gpus), "--first-gpu", StrCat(FirstGpu(request.task, host))});
  }
  return command;
}

void SshLauncher::Start(const control::StartRequest& request) { reaches_->Start(request); }

std::string SshLauncher::GetPlace(job::TaskId task, int64_t incarnation) const {
  const auto place = places_.find({task, incarnation});
  return place == places_.end() ? "" : StrCat("host ", hosts_.all[place->second].name);
}

// An agent that does not report or obey: its host is avoided for a while.
void SshLauncher::Kill(job::TaskId task, int64_t incarnation) {
  if (const auto place = places_.find({task, incarnation}); place != places_.end()) {
    choice_.Avoid(place->second, now());
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
      const auto place = places_.find(id);
      if (place != places_.end()) choice_.Avoid(place->second, now());
      missed->second = choice_.AnyGood(now()) && !staying_.contains(each.id);
    }
    each.end.disrupted = missed->second;
  }
  return seen;
}

}  // namespace muster::launch::ssh
