// Describes a job in words and numbers, for `muster status`.
#include <algorithm>
#include <utility>

#include "muster/control/coordinator.h"
#include "muster/control/status_json.h"
#include "muster/io/file_system.h"

namespace muster::control {
namespace {

using formats::JsonFields;

// The most lost checkpoints that are shown: as many as failures.
constexpr size_t kMaxLosses = 20;
constexpr double kWorthSaying = 0.5;  // seconds of a pause

// Whether tasks that wait are started.
bool StartsTasks(job::JobPhase phase) {
  return phase == job::JobPhase::kActive || phase == job::JobPhase::kFinishing;
}

// "pause": seconds after its end before which a task that waits is not started again; left out if
// nobody would notice it.
Json TaskJson(job::TaskId id, const job::TaskStatus& task, job::JobPhase phase) {
  Json json = {{"task", job::TaskName(id)},
               {"phase", PhaseName(task.phase)},
               {"incarnation", task.incarnation},
               {"restarts", task.restarts + task.restarts_in_place}};
  if (task.disruptions > 0) json["disruptions"] = task.disruptions;
  // For a task that was started again and ended by itself, the end of its last incarnation.
  const bool ended_by_itself =
      task.phase == job::TaskPhase::kSucceeded || task.phase == job::TaskPhase::kFailed;
  if (!task.stop_reason.empty() && task.phase != job::TaskPhase::kRunning && !ended_by_itself) {
    json["stop_reason"] = task.stop_reason;
  }
  if (task.last_end) {
    json["last_end"] = ToJson(*task.last_end);
    json["last_end"]["text"] = task.last_end->Describe();
    const double pause = task.not_before - task.last_end->at;
    const bool waits = task.phase == job::TaskPhase::kWaiting && StartsTasks(phase);
    if (waits && pause >= kWorthSaying) json["pause"] = pause;
  }
  return json;
}

Json FailureJson(const job::JobStatus& status, const job::Failure& failure, const Json& lines,
                 const Json& diagnoses) {
  Json json = {{"task", job::TaskName(failure.task)}, {"incarnation", failure.incarnation},
               {"text", failure.end.Describe()},      {"end", ToJson(failure.end)},
               {"seconds", failure.end.at},           {"follow_up", failure.follow_up}};
  const auto task = status.tasks.find(failure.task);
  if (task != status.tasks.end()) {
    json["restarted"] = task->second.incarnation > failure.incarnation;
  }
  const std::string name = IncarnationName(failure.task, failure.incarnation);
  if (const auto found = lines.find(name); found != lines.end()) json["last_lines"] = *found;
  if (const auto found = diagnoses.find(name); found != diagnoses.end()) {
    json["diagnosis"] = *found;
  }
  return json;
}

// What the tasks of each type run: the first word of their command, a path from the root if it is
// one. Templates that give no process were refused when the job was made.
Json GetPrograms(const job::JobSpec& spec, const Json& state) {
  JsonFields fields(state, "state");
  JsonFields options(fields.Object("options"), "options");
  Json programs = Json::object();
  for (const auto& [type, replica] : spec.replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    if (!process.ok() || process->command.empty()) continue;
    const std::string& program = process->command[0];
    const std::string folder = process->working_directory.empty()
                                   ? options.Text("working_directory")
                                   : process->working_directory;
    const bool is_path = program.find('/') != std::string::npos;
    programs[std::string(job::TypeName(type))] = is_path ? io::JoinPath(folder, program) : program;
  }
  return programs;
}

// The lost checkpoints with a "text" for people.
Json LossJson(const job::JobSpec& spec, const Json& loss) {
  JsonFields fields(loss, "lost checkpoints");
  Json json = loss;
  json["text"] =
      StrCat(fields.Text("task"), " was started again (incarnation ",
             fields.Int("incarnation", 0, 0, INT64_MAX), "), and the checkpoints up to step ",
             fields.Int("step", 0, 0, INT64_MAX), " are gone from ", spec.model_dir,
             ": that training is repeated; a program that removes its model folder at startup ",
             "loses it at each restart: let it keep the folder, or run it with --restarts 0");
  return json;
}

// "counts": of a native training's chief, its records "trained", "dropped" and "repeated".
void SetStep(int64_t step, const Counts& counts, Json* task) {
  (*task)["step"] = step;
  if (!counts.empty()) (*task)["counts"] = counts;
}

// Wall seconds until which a job ran that has ended or is suspended; 0: it may still run. One that
// was suspended when it ended ran until then.
double GetRunEnd(const job::JobStatus& status) {
  for (const job::Condition& condition : status.conditions) {
    if (condition.type == "Suspended" && condition.is_true) return condition.last_transition;
  }
  return status.completion_time;
}

}  // namespace

Json DescribeJob(const job::JobSpec& spec, const job::JobStatus& status, const Json& state) {
  JsonFields fields(state, "state");
  const Json& addresses = fields.Object("addresses");
  const Json& steps = fields.Object("last_steps");
  Json json = {{"name", spec.name},
               {"phase", PhaseName(status.phase)},
               {"message", status.failure_message},
               {"model_dir", spec.model_dir},
               {"programs", GetPrograms(spec, state)},
               {"start_time", status.start_time},
               {"completion_time", status.completion_time},
               {"tasks", Json::array()},
               {"failures", Json::array()},
               {"warnings", Json::array()},
               {"lost_checkpoints", Json::array()},
               {"tfjob", job::StatusJson(spec, status)}};
  if (!status.room_note.empty()) json["notes"] = {status.room_note};
  if (status.gave_back > 0) json["gave_back"] = status.gave_back;
  if (const double end = GetRunEnd(status); end > 0) {
    json["took"] = status.start_time > 0 ? std::max(0.0, end - status.start_time) : 0.0;
  }
  for (const auto& [id, task] : status.tasks) {
    json["tasks"].push_back(TaskJson(id, task, status.phase));
    const auto address = addresses.find(job::TaskName(id));
    if (address != addresses.end()) json["tasks"].back()["address"] = *address;
    if (const auto last = steps.find(job::TaskName(id)); last != steps.end()) {
      JsonFields about(*last, "last step");
      SetStep(about.Int("step", 0, 0, INT64_MAX), ParseCounts(about.Object("counts")),
              &json["tasks"].back());
    }
  }
  if (status.phase == job::JobPhase::kSucceeded) json["warnings"] = job::Shortfalls(status);
  for (const Json& loss : fields.List("lost_checkpoints")) {
    json["lost_checkpoints"].push_back(LossJson(spec, loss));
  }
  for (const job::Failure& failure : status.failures) {
    json["failures"].push_back(
        FailureJson(status, failure, fields.Object("last_lines"), fields.Object("diagnoses")));
  }
  return json;
}

void Coordinator::KeepLastSteps() {
  for (const auto& [key, agent] : agents_) {
    if (!agent.report || !agent.report->end || !agent.report->step) continue;
    Json& last = last_steps_[job::TaskName(key.first)] = Json::object();
    SetStep(*agent.report->step, agent.report->counts, &last);
  }
}

// Whether it is news. What a program removes at its first start is meant to go; what is gone after
// it was started again had been trained for this job.
bool Coordinator::RecordLoss(const AgentReport& report) {
  const job::TaskStatus& task = status_.tasks.at(report.task);
  const int starts_again = task.restarts + task.disruptions + task.restarts_in_place;
  if (!report.lost_step || starts_again == 0) return false;
  const Json loss = {{"task", job::TaskName(report.task)},
                     {"incarnation", report.incarnation},
                     {"step", *report.lost_step}};
  const bool is_known = std::find(lost_checkpoints_.begin(), lost_checkpoints_.end(), loss) !=
                        lost_checkpoints_.end();
  if (is_known || lost_checkpoints_.size() >= kMaxLosses) return false;
  lost_checkpoints_.push_back(loss);
  return true;
}

// Adds what only a live coordinator knows.
Json Coordinator::Describe() const {
  Json json = DescribeJob(spec_, status_, State(status_));
  json["waiting_for"] = waiting_for_;
  for (Json& entry : json["tasks"]) {
    const auto id = job::ParseTaskName(entry["task"].get<std::string>());
    const auto incarnation = entry["incarnation"].get<int64_t>();
    if (std::string place = environment_.launcher->GetPlace(*id, incarnation); !place.empty()) {
      entry["place"] = std::move(place);
    }
    const auto agent = agents_.find({*id, incarnation});
    if (agent == agents_.end()) continue;
    // Where the launcher does not see ends, it takes a while until an end is certain.
    const bool is_waited_for = !traits_.sees_ends && agent->second.killed && IsLive(agent->first);
    if (is_waited_for && !agent->second.given_up.empty()) {
      entry["given_up"] = agent->second.given_up;
    }
    if (!agent->second.report) continue;
    const AgentReport& report = *agent->second.report;
    entry["said"] = report.said;
    entry["agent_pid"] = report.pid;
    entry["pid"] = report.child_pid;
    entry["cpu_seconds"] = report.cpu_seconds;
    entry["pss_bytes"] = report.pss_bytes;
    if (report.step) SetStep(*report.step, report.counts, &entry);
    entry["idle_seconds"] = report.idle_seconds + (now() - agent->second.last_heard);
    entry["heard_seconds"] = now() - agent->second.last_heard;
  }
  return json;
}

}  // namespace muster::control
