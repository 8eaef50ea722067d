// Rendezvous: who is where, and what each task is started with once that is known.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/control/coordinator.h"
#include "muster/job/tony_environment.h"
#include "muster/process/identity.h"

namespace muster::control {
namespace {

// After that a job of MIN:MAX workers starts without those for which the platform has no process.
constexpr double kElasticSeconds = 10;
// In place of an address that nobody knows yet: a name that resolves nowhere (RFC 2606).
constexpr std::string_view kNoAddress = ".invalid:1";

}  // namespace

void Coordinator::RecordAddress(const AgentReport& report) {
  if (!report.address.empty()) addresses_[report.task] = report.address;
}

// A task that is being started is where it says that it is; one that runs, ended, or waits for its
// turn is, or will be, where it was.
bool Coordinator::IsMissing(job::TaskId id) const {
  if (!addresses_.contains(id)) return true;
  const job::TaskStatus& task = status_.tasks.at(id);
  if (task.phase != job::TaskPhase::kStarting) return false;
  const auto agent = agents_.find({id, task.incarnation});
  return agent == agents_.end() || !agent->second.report || agent->second.report->address.empty();
}

std::vector<job::TaskId> Coordinator::Missing() const {
  std::vector<job::TaskId> missing;
  for (const auto& [id, status] : status_.tasks) {
    if (id.index < spec_.count(id.type) && IsMissing(id)) missing.push_back(id);
  }
  return missing;
}

bool Coordinator::Needs(job::TaskId task, job::TaskId other) const {
  if (task == other) return true;
  if (other.type == job::TaskType::kEvaluator) return options_.tf_config.evaluator_in_cluster;
  return !spec_.dynamic_workers || other.type == job::TaskType::kPs;
}

double Coordinator::SecondsUntilDispensable(job::TaskId id) const {
  const job::TaskStatus& task = status_.tasks.at(id);
  const auto agent = agents_.find({id, task.incarnation});
  const bool lacks = id.type == job::TaskType::kWorker && task.phase == job::TaskPhase::kStarting &&
                     agent != agents_.end() && agent->second.asked_at &&
                     environment_.launcher->LacksProcess(id, task.incarnation);
  return lacks ? *agent->second.asked_at + kElasticSeconds - now()
               : std::numeric_limits<double>::infinity();
}

double Coordinator::LeaveOutDispensable(std::vector<job::TaskId>* missing) const {
  double next = std::numeric_limits<double>::infinity();
  if (!spec_.min_workers) return next;
  const auto absent = std::ranges::count(*missing, job::TaskType::kWorker, &job::TaskId::type);
  if (spec_.count(job::TaskType::kWorker) - absent < std::max(1, *spec_.min_workers)) return next;
  std::erase_if(*missing, [&](job::TaskId id) {
    const double seconds = SecondsUntilDispensable(id);
    if (seconds > 0) next = std::min(next, seconds);
    return seconds <= 0;
  });
  return next;
}

// "worker-1, ps-0 did not report within 60s; of those that wait: worker-0: ...".
std::string Coordinator::DescribeMeeting(const std::vector<job::TaskId>& missing) const {
  std::vector<std::string> names, waiting;
  for (const job::TaskId id : missing) names.push_back(job::TaskName(id));
  for (const auto& [key, agent] : agents_) {
    if (!agent.report || agent.report->state != AgentReport::State::kWaiting) continue;
    waiting.push_back(StrCat(job::TaskName(key.first), " at ", agent.report->address, " says '",
                             agent.report->said, "'"));
  }
  std::string text = StrCat("rendezvous: ", absl::StrJoin(names, ", "), " did not report within ",
                            job::PrintDuration(options_.rendezvous_seconds));
  if (!waiting.empty()) text += StrCat("; of those that wait, ", absl::StrJoin(waiting, ", "));
  return text;
}

double Coordinator::GiveStarts() {
  double next = std::numeric_limits<double>::infinity();
  std::optional<std::vector<job::TaskId>> missing;  // looked for once, and only if one waits
  for (auto& [key, agent] : agents_) {
    if (agent.start || agent.killed || agent.stop_at || !agent.report) continue;
    if (agent.report->state != AgentReport::State::kWaiting) continue;
    if (!missing) {
      missing = Missing();
      next = LeaveOutDispensable(&*missing);
    }
    const bool waits_on =
        std::any_of(missing->begin(), missing->end(),
                    [this, task = key.first](job::TaskId id) { return Needs(task, id); });
    if (waits_on) continue;
    auto order = StartOrderFor(key.first, key.second);
    if (!order.ok()) {
      Kill(key, agent, StrCat("cannot start: ", ToStd(order.status().message())));
      continue;
    }
    agent.start = *std::move(order);
    ++agent.version;
  }
  return next;
}

// It grows each time that all tasks are started again together, which counts as a restart of the
// one that has failed.
int Coordinator::CountSessions() const {
  if (spec_.restart_scope != job::RestartScope::kGang) return 0;
  int sessions = 0;
  for (const auto& [id, task] : status_.tasks) sessions += task.restarts + task.disruptions;
  return sessions;
}

absl::StatusOr<StartOrder> Coordinator::StartOrderFor(job::TaskId task, int64_t incarnation) const {
  job::Cluster cluster;
  for (const auto& [id, address] : addresses_) {
    if (id.index >= spec_.count(id.type)) continue;
    const bool is_seen = id.type != job::TaskType::kEvaluator || id == task || !IsMissing(id);
    if (is_seen) cluster[id] = address;
  }
  if (spec_.min_workers) {
    for (int index = 0; index < spec_.count(job::TaskType::kWorker); ++index) {
      const job::TaskId id = {job::TaskType::kWorker, index};
      cluster.try_emplace(id, StrCat(job::TaskName(id), kNoAddress));
    }
  }
  const job::Process& process = processes_.at(task.type);
  const job::Placeholders values =
      job::PlaceholdersFor(spec_, cluster, task, process::ThisProcess().host);
  StartOrder order;
  for (const std::string& argument : process.command) {
    order.command.push_back(job::ExpandPlaceholders(argument, values));
  }
  if (options_.tony_environment) {
    order.env = job::GetTonyEnvironment(spec_, cluster, task, CountSessions(), options_.tf_config);
  }
  for (const auto& [name, value] : process.env) {
    order.env.emplace_back(name, job::ExpandPlaceholders(value, values));
  }
  order.env.emplace_back("MUSTER_JOB", spec_.name);
  order.env.emplace_back("MUSTER_TASK", job::TaskName(task));
  order.env.emplace_back("MUSTER_INCARNATION", StrCat(incarnation));
  order.env.emplace_back("MUSTER_EVALUATOR",
                         spec_.count(job::TaskType::kEvaluator) > 0 ? "1" : "0");
  job::TfConfigOptions tf_options = options_.tf_config;
  for (const auto& [name, value] : process.env) {
    if (name == "TF_CONFIG") tf_options.model_dir = job::GetModelDir(value);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string tf_config,
                          job::TfConfig(spec_, cluster, task, tf_options));
  if (!tf_config.empty()) order.env.emplace_back("TF_CONFIG", tf_config);
  order.working_directory =
      process.working_directory.empty() ? options_.working_directory : process.working_directory;
  if (!options_.task_folders.empty()) {
    order.working_directory = StrCat(options_.task_folders, "/", job::TaskName(task));
  }
  order.memory_bytes = process.memory_bytes;
  order.model_dir = spec_.model_dir;
  order.progress_seconds = spec_.progress_timeout_seconds.value_or(0);
  return order;
}

// Those for whom the others wait too long are given up, with a message that names them all.
double Coordinator::CheckRendezvous() {
  double next = std::numeric_limits<double>::infinity();
  if (options_.rendezvous_seconds <= 0) return next;
  for (auto& [key, agent] : agents_) {
    const auto task = status_.tasks.find(key.first);
    const bool awaited = task != status_.tasks.end() && task->second.incarnation == key.second &&
                         task->second.phase == job::TaskPhase::kStarting && !agent.report &&
                         !agent.killed && agent.asked_at.has_value();
    if (!awaited) continue;
    const double left = *agent.asked_at + options_.rendezvous_seconds - now();
    if (left > 0) {
      next = std::min(next, left);
    } else {
      std::vector<job::TaskId> missing = Missing();
      std::erase_if(missing, [this, task = key.first](job::TaskId id) { return !Needs(task, id); });
      Kill(key, agent, DescribeMeeting(missing));
      next = 0.1;
    }
  }
  return next;
}

}  // namespace muster::control
