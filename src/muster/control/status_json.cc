#include "muster/control/status_json.h"

#include <limits>
#include <utility>

namespace muster::control {
namespace {

using formats::JsonFields;

constexpr int64_t kMaxCount = std::numeric_limits<int>::max();
constexpr int64_t kMaxIncarnation = std::numeric_limits<int64_t>::max() / 2;

// Returns the phase of that name. The values of phases are 0, 1, 2 and so on up to `last`.
template <typename Phase>
Phase ParsePhase(JsonFields& fields, Phase last) {
  const std::string name = fields.Text("phase");
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    if (PhaseName(static_cast<Phase>(value)) == name) return static_cast<Phase>(value);
  }
  fields.Fail(StrCat("\"phase\" '", name, "' is unknown"));
  return last;
}

std::vector<double> ParseTimes(JsonFields& fields, const char* name) {
  std::vector<double> times;
  for (const Json& each : fields.List(name)) {
    if (!each.is_number()) {
      fields.Fail(StrCat("\"", name, "\" must be a list of numbers"));
      break;
    }
    times.push_back(each.get<double>());
  }
  return times;
}

// What is false, empty or 0 is left out, but for counts: a job has many tasks, and the API server,
// etcd and the operator keep its status in memory.
Json TaskJson(const job::TaskStatus& task) {
  Json json = {{"phase", PhaseName(task.phase)}, {"incarnation", task.incarnation}};
  if (task.not_before != 0) json["not_before"] = task.not_before;
  if (task.restart_after) json["restart_after"] = true;
  if (task.gang) json["gang"] = true;
  if (!task.stop_reason.empty()) json["stop_reason"] = task.stop_reason;
  if (task.hanging) json["hanging"] = true;
  if (task.cut_off) json["cut_off"] = true;
  json["restarts"] = task.restarts;
  json["disruptions"] = task.disruptions;
  json["restarts_in_place"] = task.restarts_in_place;
  if (!task.recent_restarts.empty()) json["recent_restarts"] = task.recent_restarts;
  if (!task.recent_disruptions.empty()) json["recent_disruptions"] = task.recent_disruptions;
  if (task.last_end) json["last_end"] = ToJson(*task.last_end);
  if (task.early_end) json["early_end"] = ToJson(*task.early_end);
  return json;
}

std::optional<job::TaskEnd> ParseEnd(JsonFields& fields, const char* name) {
  if (!fields.Has(name)) return std::nullopt;
  auto end = EndFromJson(fields.Object(name), StrCat(fields.where(), ": ", name));
  fields.Update(end.status());
  if (!end.ok()) return std::nullopt;
  return *std::move(end);
}

absl::StatusOr<job::TaskStatus> TaskFromJson(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  job::TaskStatus task;
  task.phase = ParsePhase(fields, job::TaskPhase::kStopped);
  task.incarnation = fields.Int("incarnation", 0, 0, kMaxIncarnation);
  task.not_before = fields.Number("not_before", 0);
  task.restart_after = fields.Bool("restart_after", false);
  task.gang = fields.Bool("gang", false);
  task.stop_reason = fields.Text("stop_reason");
  task.hanging = fields.Bool("hanging", false);
  task.restarts = static_cast<int>(fields.Int("restarts", 0, 0, kMaxCount));
  task.disruptions = static_cast<int>(fields.Int("disruptions", 0, 0, kMaxCount));
  task.restarts_in_place = static_cast<int>(fields.Int("restarts_in_place", 0, 0, kMaxCount));
  task.recent_restarts = ParseTimes(fields, "recent_restarts");
  task.recent_disruptions = ParseTimes(fields, "recent_disruptions");
  task.cut_off = fields.Bool("cut_off", false);
  task.last_end = ParseEnd(fields, "last_end");
  task.early_end = ParseEnd(fields, "early_end");
  MUSTER_RETURN_IF_ERROR(fields.status());
  return task;
}

Json ConditionJson(const job::Condition& condition) {
  return {{"type", condition.type},
          {"status", condition.is_true},
          {"reason", condition.reason},
          {"message", condition.message},
          {"last_update", condition.last_update},
          {"last_transition", condition.last_transition}};
}

absl::StatusOr<job::Condition> ConditionFromJson(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  job::Condition condition{
      fields.Text("type"),    fields.Bool("status", true),     fields.Text("reason"),
      fields.Text("message"), fields.Number("last_update", 0), fields.Number("last_transition", 0)};
  MUSTER_RETURN_IF_ERROR(fields.status());
  return condition;
}

Json FailureJson(const job::Failure& failure) {
  return {{"task", job::TaskName(failure.task)},
          {"incarnation", failure.incarnation},
          {"end", ToJson(failure.end)},
          {"follow_up", failure.follow_up}};
}

absl::StatusOr<job::Failure> FailureFromJson(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  job::Failure failure;
  const auto task = job::ParseTaskName(fields.Text("task"));
  if (!task) fields.Fail("\"task\" is not a task");
  failure.task = task.value_or(job::TaskId{});
  failure.incarnation = fields.Int("incarnation", 0, 0, kMaxIncarnation);
  failure.follow_up = fields.Bool("follow_up", false);
  auto end = EndFromJson(fields.Object("end"), StrCat(where, ": end"));
  fields.Update(end.status());
  if (end.ok()) failure.end = *std::move(end);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return failure;
}

void ParseTasks(JsonFields& fields, job::JobStatus* status) {
  for (const auto& [name, json] : fields.Object("tasks").items()) {
    const auto id = job::ParseTaskName(name);
    auto task = TaskFromJson(json, StrCat(fields.where(), ": ", name));
    if (!id) return fields.Fail(StrCat("'", name, "' is not a task"));
    if (!task.ok()) return fields.Update(task.status());
    status->tasks[*id] = *std::move(task);
  }
}

void ParseLists(JsonFields& fields, job::JobStatus* status) {
  for (const Json& json : fields.List("conditions")) {
    auto condition = ConditionFromJson(json, StrCat(fields.where(), ": conditions"));
    if (!condition.ok()) return fields.Update(condition.status());
    status->conditions.push_back(*std::move(condition));
  }
  for (const Json& json : fields.List("failures")) {
    auto failure = FailureFromJson(json, StrCat(fields.where(), ": failures"));
    if (!failure.ok()) return fields.Update(failure.status());
    status->failures.push_back(*std::move(failure));
  }
}

}  // namespace

Json ToJson(const job::TaskEnd& end) {
  return {{"exit_code", end.exit_code},         {"signal", end.signal},
          {"out_of_memory", end.out_of_memory}, {"lost", end.lost},
          {"disrupted", end.disrupted},         {"detail", end.detail},
          {"last_line", end.last_line},         {"at", end.at}};
}

absl::StatusOr<job::TaskEnd> EndFromJson(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  job::TaskEnd end;
  end.exit_code = static_cast<int>(fields.Int("exit_code", -1, -1, 255));
  end.signal = static_cast<int>(fields.Int("signal", 0, 0, 128));
  end.out_of_memory = fields.Bool("out_of_memory", false);
  end.lost = fields.Bool("lost", false);
  end.disrupted = fields.Bool("disrupted", false);
  end.detail = fields.Text("detail");
  end.last_line = fields.Text("last_line");
  end.at = fields.Number("at", 0);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return end;
}

Json ToJson(const job::JobStatus& status) {
  Json json = {{"phase", PhaseName(status.phase)},
               {"tasks", Json::object()},
               {"conditions", Json::array()},
               {"failures", Json::array()},
               {"failure_message", status.failure_message},
               {"next_incarnation", status.next_incarnation},
               {"recent_restarts", status.recent_restarts},
               {"recent_disruptions", status.recent_disruptions},
               {"gang_restart", status.gang_restart},
               {"delete_sent", status.delete_sent},
               {"clock", status.clock},
               {"last_monotonic", status.last_monotonic},
               {"last_wall", status.last_wall},
               {"clock_id", status.clock_id},
               {"active_since", status.active_since},
               {"ended_at", status.ended_at},
               {"progressed", status.progressed},
               {"disrupted_at", status.disrupted_at},
               {"start_time", status.start_time},
               {"completion_time", status.completion_time}};
  if (status.gave_back > 0) json["gave_back"] = status.gave_back;
  if (!status.room_note.empty()) json["room_note"] = status.room_note;
  for (const auto& [id, task] : status.tasks) json["tasks"][job::TaskName(id)] = TaskJson(task);
  for (const auto& each : status.conditions) json["conditions"].push_back(ConditionJson(each));
  for (const auto& each : status.failures) json["failures"].push_back(FailureJson(each));
  return json;
}

absl::StatusOr<job::JobStatus> StatusFromJson(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  job::JobStatus status;
  status.phase = ParsePhase(fields, job::JobPhase::kFailed);
  ParseTasks(fields, &status);
  ParseLists(fields, &status);
  status.failure_message = fields.Text("failure_message");
  status.next_incarnation = fields.Int("next_incarnation", 1, 1, kMaxIncarnation);
  status.recent_restarts = ParseTimes(fields, "recent_restarts");
  status.recent_disruptions = ParseTimes(fields, "recent_disruptions");
  status.gang_restart = fields.Bool("gang_restart", false);
  status.delete_sent = fields.Bool("delete_sent", false);
  status.gave_back = static_cast<int>(fields.Int("gave_back", 0, 0, kMaxCount));
  status.room_note = fields.Text("room_note");
  status.clock = fields.Number("clock", 0);
  status.last_monotonic = fields.Number("last_monotonic", 0);
  status.last_wall = fields.Number("last_wall", 0);
  status.clock_id = fields.Text("clock_id");
  status.active_since = fields.Number("active_since", 0);
  status.ended_at = fields.Number("ended_at", 0);
  status.progressed = fields.Bool("progressed", false);
  status.disrupted_at = fields.Number("disrupted_at", -1);
  status.start_time = fields.Number("start_time", 0);
  status.completion_time = fields.Number("completion_time", 0);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return status;
}

}  // namespace muster::control
