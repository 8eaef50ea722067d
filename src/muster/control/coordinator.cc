#include "muster/control/coordinator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/control/agent.h"

namespace muster::control {
namespace {

using Phase = job::TaskObservation::Phase;

constexpr int64_t kVersionsPerGeneration = int64_t{1} << 32;
// Beyond a lease: for an agent that has ended its task by itself to say so.
constexpr double kLeaseMargin = 1;
// As the agent has them (agent.h): a look at its lease, and what its task has to end.
constexpr double kAgentEndSeconds = kAgentLookSeconds + kLostGraceSeconds;
constexpr double kClockDrift = 0.01;  // of two machines
// A pass that comes so late says that this process did not run.
constexpr double kOversleptSeconds = 2;
// For an agent to look at a task that hangs.
constexpr double kDiagnosisSeconds = 30;

bool OnlyTimePassed(const job::JobStatus& before, const job::JobStatus& after) {
  job::JobStatus same = after;
  same.clock = before.clock;
  same.last_monotonic = before.last_monotonic;
  same.last_wall = before.last_wall;
  return same == before && after.clock_id == before.clock_id;
}

}  // namespace

double GoneAfterSeconds(double lease_seconds) {
  return (lease_seconds + kAgentEndSeconds) * (1 + kClockDrift) + kLeaseMargin;
}

std::string IncarnationName(job::TaskId task, int64_t incarnation) {
  return StrCat(job::TaskName(task), ".", incarnation);
}

absl::Status Coordinator::ReadTemplates() {
  for (const auto& [type, replica] : spec_.replicas) {
    auto process = job::ParseProcess(replica.pod_template);
    if (!process.ok()) return Annotate(process.status(), job::TypeFieldName(type));
    processes_[type] = *std::move(process);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::New(const job::JobSpec& spec,
                                                              const CoordinatorOptions& options,
                                                              const Environment& environment) {
  std::unique_ptr<Coordinator> coordinator(new Coordinator(spec, options, environment));
  MUSTER_RETURN_IF_ERROR(coordinator->ReadTemplates());
  return coordinator;
}

Coordinator::Agent& Coordinator::GetAgent(job::TaskId task, int64_t incarnation) {
  const auto [agent, is_new] = agents_.try_emplace({task, incarnation});
  if (is_new) agent->second.version = generation_ * kVersionsPerGeneration + 1;
  return agent->second;
}

job::TaskObservation Coordinator::Merge(const job::TaskObservation& seen) const {
  job::TaskObservation merged = seen;
  const auto found = agents_.find({seen.id, seen.incarnation});
  if (found == agents_.end() || !found->second.report) return merged;
  const Agent& agent = found->second;
  merged.progressed = agent.report->saved || agent.report->step.value_or(0) > 0;
  if (agent.report->end) {
    merged.phase = Phase::kEnded;
    merged.end = *agent.report->end;
  } else if (seen.phase == Phase::kStarting && !agent.killed &&
             agent.report->state == AgentReport::State::kRunning) {
    merged.phase = Phase::kRunning;
    merged.idle_seconds = agent.report->idle_seconds + (now() - agent.last_heard);
    merged.work = agent.report->work;
  }
  return merged;
}

// What the launcher sees of agents, with what they say of themselves.
job::Observed Coordinator::Observe() {
  job::Observed observed;
  observed.cancelled = cancelled_;
  for (const job::TaskObservation& seen : environment_.launcher->Observe()) {
    job::TaskObservation merged = Merge(seen);
    const auto agent = agents_.find({seen.id, seen.incarnation});
    if (merged.phase == Phase::kStarting && agent != agents_.end() && IsGone(agent->second)) {
      merged.phase = Phase::kEnded;
      // Of one that was never heard of nobody knows that its machine was ever there.
      const bool was_there = agent->second.report.has_value() || agent->second.adopted;
      merged.end = {.lost = true, .disrupted = was_there};
    }
    const bool is_lost =
        merged.phase == Phase::kGone || (merged.phase == Phase::kEnded && merged.end.lost);
    if (is_lost && agent != agents_.end() && !agent->second.given_up.empty()) {
      merged.end = {.lost = true,
                    .disrupted = merged.phase == Phase::kEnded && merged.end.disrupted,
                    .detail = agent->second.given_up};
      merged.phase = Phase::kEnded;
    }
    observed.tasks.push_back(std::move(merged));
  }
  return observed;
}

// Those seconds count as no agent's silence.
void Coordinator::Forgive(double seconds) {
  const auto later = [&](double at) { return std::min(at + seconds, now()); };
  for (auto& [key, agent] : agents_) {
    agent.last_heard = later(agent.last_heard);
    if (agent.asked_at) agent.asked_at = later(*agent.asked_at);
    if (agent.stop_at) agent.stop_at = later(*agent.stop_at);
  }
  if (gang_wait_) gang_wait_->Reset();
}

void Coordinator::SetPaused(bool paused) {
  if (paused == paused_) return;
  if (paused) {
    paused_at_ = now();
  } else {
    Forgive(now() - *paused_at_);
    wake_at_.reset();
  }
  paused_ = paused;
  for (auto& [key, agent] : agents_) ++agent.version;
}

absl::StatusOr<double> Coordinator::Pass() {
  if (wake_at_ && !paused_ && now() - *wake_at_ > kOversleptSeconds) Forgive(now() - passed_at_);
  auto wake_after = PassOnce();
  passed_at_ = now();
  wake_at_ = wake_after.ok() ? std::optional(now() + *wake_after) : std::nullopt;
  return wake_after;
}

absl::StatusOr<double> Coordinator::PassOnce() {
  job::Observed observed = Observe();
  observed.give_back = LookForRoom();
  const job::Now time{.wall = environment_.clock->WallSeconds(),
                      .monotonic = now(),
                      .clock_id = environment_.clock_id};
  job::Reconciled decided = job::Reconcile(spec_, status_, observed, time);
  const bool is_new = !OnlyTimePassed(status_, decided.status);
  if (is_new) KeepLastWords(decided.status);
  if (is_new || !is_written_) {
    if (const absl::Status written = WriteDown(decided.status); !written.ok()) {
      if (!cancelled_.empty()) StopTasks(decided.actions);
      return written;
    }
  }
  status_ = std::move(decided.status);
  waiting_for_ = std::move(decided.waiting_for);
  RecordEnds();
  Act(decided.actions);
  const double next_start = GiveStarts();
  ForgetAgents();
  if (paused_) return std::max(0.0, decided.wake_after);
  return std::max(0.0, std::min({decided.wake_after, next_start, CheckLeases(), CheckRendezvous(),
                                 gang_wait_->seconds_left()}));
}

absl::Status Coordinator::SetSuspended(bool suspended) {
  if (status_.phase != job::JobPhase::kActive && status_.phase != job::JobPhase::kSuspended) {
    return absl::FailedPreconditionError(StrCat("the job ", spec_.name, " is ",
                                                job::PhaseName(status_.phase),
                                                ": it can be neither suspended nor resumed"));
  }
  const bool before = std::exchange(spec_.suspend, suspended);
  const absl::Status written = WriteDown(status_);
  if (!written.ok()) spec_.suspend = before;
  return written;
}

void Coordinator::KeepLastWords(const job::JobStatus& status) {
  Texts lines, diagnoses;
  for (const job::Failure& failure : status.failures) {
    const std::string name = IncarnationName(failure.task, failure.incarnation);
    const auto agent = agents_.find({failure.task, failure.incarnation});
    if (agent != agents_.end() && agent->second.report && agent->second.report->end) {
      lines[name] = agent->second.report->last_lines;
      diagnoses[name] = agent->second.report->diagnosis;
    } else {
      if (const auto known = last_lines_.find(name); known != last_lines_.end())
        lines.insert(*known);
      if (const auto known = diagnoses_.find(name); known != diagnoses_.end())
        diagnoses.insert(*known);
    }
  }
  std::erase_if(diagnoses, [](const auto& entry) { return entry.second.empty(); });
  last_lines_ = std::move(lines);
  diagnoses_ = std::move(diagnoses);
  KeepLastSteps();
}

bool Coordinator::IsLive(const Key& key) const {
  const auto task = status_.tasks.find(key.first);
  return task != status_.tasks.end() && task->second.incarnation == key.second &&
         task->second.live();
}

// Ends that are written down now: their agents may go.
void Coordinator::RecordEnds() {
  for (auto& [key, agent] : agents_) {
    if (!agent.report || !agent.report->end || agent.end_taken) continue;
    if (IsLive(key)) continue;
    agent.end_taken = true;
    ++agent.version;
  }
}

// Ends what somebody asked to end although the disk is full: that needs no memory, since a
// coordinator that does not know of it finds the tasks ended.
void Coordinator::StopTasks(const std::vector<job::Action>& actions) {
  for (const job::Action& action : actions) {
    if (action.kind == job::Action::Kind::kStop) StopTask(action);
  }
}

void Coordinator::Act(const std::vector<job::Action>& actions) {
  for (const job::Action& action : actions) {
    if (action.kind == job::Action::Kind::kStart) {
      StartTask(action);
    } else if (action.kind == job::Action::Kind::kStop) {
      StopTask(action);
    }
  }
}

void Coordinator::StartTask(const job::Action& action) {
  Agent& agent = GetAgent(action.id, action.incarnation);
  if (!agent.asked_at) agent.asked_at = now();
  if (agent.report) return;  // it is there
  StartRequest request{.task = action.id,
                       .incarnation = action.incarnation,
                       .lease_seconds = options_.lease_seconds,
                       .process = processes_.at(action.id.type)};
  if (const auto address = addresses_.find(action.id); address != addresses_.end()) {
    request.port = std::atoi(address->second.substr(address->second.rfind(':') + 1).c_str());
    request.port_required =
        std::any_of(agents_.begin(), agents_.end(), [&action](const auto& entry) {
          const auto& report = entry.second.report;
          return entry.first.first != action.id && report &&
                 report->state == AgentReport::State::kRunning;
        });
  }
  environment_.launcher->Start(request);
}

// In good order where there is an agent that will do it, else at once.
void Coordinator::StopTask(const job::Action& action) {
  const Key key{action.id, action.incarnation};
  Agent& agent = GetAgent(action.id, action.incarnation);
  if (!agent.stop_at) {
    agent.stop_at = now();
    agent.stop_reason = action.reason;
    agent.diagnose = action.hanging;
    ++agent.version;
  }
  const double patience = options_.grace_seconds + options_.lease_seconds + kLeaseMargin +
                          (agent.diagnose ? kDiagnosisSeconds : 0);
  // One that was adopted and not asked by this coordinator may yet report.
  const double waited = now() - *agent.stop_at;
  const bool may_report = !agent.asked_at || (!traits_.sees_ends && agent.answered_at.has_value());
  const bool obeys = agent.report ? !agent.report->end && waited < patience
                                  : may_report && waited < options_.lease_seconds;
  if (!obeys) Kill(key, agent, "");
}

void Coordinator::Kill(const Key& key, Agent& agent, const std::string& why) const {
  if (!agent.killed) agent.given_up = why;
  agent.killed = true;
  environment_.launcher->Kill(key.first, key.second);
}

// Those of earlier incarnations, once their agents know.
void Coordinator::ForgetAgents() {
  std::erase_if(agents_, [this](const auto& entry) {
    const auto task = status_.tasks.find(entry.first.first);
    return (task == status_.tasks.end() || task->second.incarnation > entry.first.second) &&
           (entry.second.end_taken || entry.second.killed || !entry.second.report);
  });
}

double Coordinator::SecondsUntilGone(const Agent& agent) const {
  if (!agent.answered_at) return 0;
  double patience = GoneAfterSeconds(options_.lease_seconds);
  if (agent.stop_at) {  // it may have been told so by the last answer, and obeys without any more
    const double stop = options_.grace_seconds + (agent.diagnose ? kDiagnosisSeconds : 0);
    patience = std::max(patience, GoneAfterSeconds(stop));
  }
  return *agent.answered_at + patience - now();
}

bool Coordinator::IsGone(const Agent& agent) const {
  return !traits_.sees_ends && agent.killed && SecondsUntilGone(agent) <= 0;
}

void Coordinator::NoteAnswer(job::TaskId task, int64_t incarnation, double seconds) {
  const auto found = agents_.find({task, incarnation});
  // One that was killed is told to end at once, which prolongs nothing.
  if (found == agents_.end() || found->second.killed) return;
  const double until = now() + seconds;
  found->second.answered_at = std::max(found->second.answered_at.value_or(until), until);
}

// Seconds until the next lease may run out, or a silent agent is gone.
double Coordinator::CheckLeases() {
  double next = std::numeric_limits<double>::infinity();
  for (auto& [key, agent] : agents_) {
    if (!traits_.sees_ends && agent.killed && IsLive(key)) {
      next = std::min(next, std::max(0.0, SecondsUntilGone(agent)));
    }
    const bool is_leased = agent.report ? !agent.report->end : agent.adopted;
    if (!is_leased || agent.killed) continue;
    const double left = agent.last_heard + options_.lease_seconds + kLeaseMargin - now();
    if (left > 0) {
      next = std::min(next, left);
    } else {
      const std::string place = environment_.launcher->GetPlace(key.first, key.second);
      Kill(key, agent,
           StrCat("its agent ", place.empty() ? "" : StrCat("on ", place, " "), "was silent for ",
                  job::PrintDuration(options_.lease_seconds)));
      next = 0.1;
    }
  }
  return next;
}

bool Coordinator::Take(const AgentReport& report) {
  const auto task = status_.tasks.find(report.task);
  if (task == status_.tasks.end() || task->second.incarnation != report.incarnation) return false;
  Agent& agent = GetAgent(report.task, report.incarnation);
  agent.last_heard = now();
  if (agent.report && agent.report->sequence > report.sequence) return false;
  const bool is_news = RecordLoss(report) || !agent.report || agent.report->state != report.state ||
                       agent.report->address != report.address;
  agent.report = report;
  RecordAddress(report);
  return is_news;
}

// Null: another incarnation has taken its place, or it is none of this job.
const Coordinator::Agent* Coordinator::CurrentAgent(job::TaskId task, int64_t incarnation) const {
  const auto found = agents_.find({task, incarnation});
  const auto status = status_.tasks.find(task);
  const bool is_current =
      status != status_.tasks.end() && status->second.incarnation == incarnation;
  return found != agents_.end() && is_current ? &found->second : nullptr;
}

int64_t Coordinator::OrdersVersion(job::TaskId task, int64_t incarnation) const {
  const Agent* const agent = CurrentAgent(task, incarnation);
  return agent != nullptr ? agent->version : std::numeric_limits<int64_t>::max();
}

AgentOrders Coordinator::OrdersFor(job::TaskId task, int64_t incarnation) const {
  AgentOrders orders{.version = OrdersVersion(task, incarnation),
                     .grace_seconds = options_.grace_seconds,
                     .lease_seconds = options_.lease_seconds};
  const Agent* const current = CurrentAgent(task, incarnation);
  if (current == nullptr) {
    orders.stop = orders.end_taken = true;
    orders.stop_reason = "another agent has replaced it";
    orders.grace_seconds = 0;
    return orders;
  }
  const Agent& agent = *current;
  orders.start = agent.start;
  orders.pause = paused_;
  orders.stop = agent.stop_at.has_value() || agent.killed;
  orders.stop_reason = agent.killed && !agent.given_up.empty() ? agent.given_up : agent.stop_reason;
  if (agent.killed) orders.grace_seconds = 0;
  orders.diagnose = agent.diagnose;
  orders.end_taken = agent.end_taken;
  return orders;
}

bool Coordinator::finished() const {
  return status_.ended() && std::none_of(status_.tasks.begin(), status_.tasks.end(),
                                         [](const auto& entry) { return entry.second.live(); });
}

}  // namespace muster::control
