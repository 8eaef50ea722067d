#include "muster/control/protocol.h"

#include <limits>

#include "muster/control/status_json.h"

namespace muster::control {
namespace {

using formats::JsonFields;

using State = AgentReport::State;

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxCounts = 32, kMaxCountName = 64;
constexpr size_t kMaxLines = 200;

constexpr std::pair<State, const char*> kStates[] = {
    {State::kWaiting, "waiting"}, {State::kRunning, "running"}, {State::kEnded, "ended"}};

const char* StateName(State state) {
  for (const auto& [each, name] : kStates) {
    if (each == state) return name;
  }
  return "";
}

State ParseState(JsonFields& fields) {
  const std::string text = fields.Text("state");
  for (const auto& [state, name] : kStates) {
    if (text == name) return state;
  }
  fields.Fail(StrCat("\"state\" '", text, "' is unknown"));
  return State::kWaiting;
}

Json StartJson(const StartOrder& start) {
  Json env = Json::array();
  for (const auto& [name, value] : start.env) env.push_back({{"name", name}, {"value", value}});
  return {{"command", start.command},
          {"env", std::move(env)},
          {"working_directory", start.working_directory},
          {"memory_bytes", start.memory_bytes},
          {"model_dir", start.model_dir},
          {"progress_seconds", start.progress_seconds}};
}

using Newest = job::EvaluatorWork::Newest;
constexpr std::pair<Newest, const char*> kNewest[] = {{Newest::kUnknown, "unknown"},
                                                      {Newest::kNotEvaluated, "not evaluated"},
                                                      {Newest::kEvaluated, "evaluated"}};

Json WorkJson(const job::EvaluatorWork& work) {
  Json json = {{"still_seconds", work.still_seconds}, {"idle_seconds", work.idle_seconds}};
  for (const auto& [newest, name] : kNewest) {
    if (newest == work.newest) json["newest"] = name;
  }
  return json;
}

// An unknown word comes from an agent of another version and counts as nothing said.
job::EvaluatorWork WorkFromJson(JsonFields& report) {
  JsonFields fields(report.Object("work"), "report: work");
  job::EvaluatorWork work;
  work.still_seconds = fields.Number("still_seconds", 0);
  work.idle_seconds = fields.Number("idle_seconds", 0);
  const std::string text = fields.Text("newest");
  for (const auto& [newest, name] : kNewest) {
    if (text == name) work.newest = newest;
  }
  report.Update(fields.status());
  return work;
}

StartOrder StartFromJson(JsonFields& orders) {
  JsonFields fields(orders.Object("start"), "orders: start");
  StartOrder start;
  start.command = fields.Texts("command");
  for (const Json& json : fields.List("env")) {
    JsonFields entry(json, "orders: start: env");
    start.env.emplace_back(entry.Text("name"), entry.Text("value"));
    fields.Update(entry.status());
  }
  start.working_directory = fields.Text("working_directory");
  start.memory_bytes = fields.Int("memory_bytes", 0, 0, kMaxInt64);
  start.model_dir = fields.Text("model_dir");
  start.progress_seconds = fields.Number("progress_seconds", 0);
  if (start.command.empty()) fields.Fail("\"command\" is empty");
  orders.Update(fields.status());
  return start;
}

}  // namespace

Counts ParseCounts(const Json& json) {
  Counts counts;
  for (const auto& [name, count] : json.items()) {
    const bool sound = count.is_number_integer() && name.size() <= kMaxCountName;
    if (sound && counts.size() < kMaxCounts) counts[name] = count.get<int64_t>();
  }
  return counts;
}

Json ToJson(const AgentReport& report) {
  Json json = {{"task", job::TaskName(report.task)},  {"incarnation", report.incarnation},
               {"sequence", report.sequence},         {"state", StateName(report.state)},
               {"address", report.address},           {"pid", report.pid},
               {"child_pid", report.child_pid},       {"said", report.said},
               {"idle_seconds", report.idle_seconds}, {"cpu_seconds", report.cpu_seconds},
               {"pss_bytes", report.pss_bytes},       {"seen", report.seen}};
  if (!report.slot.empty()) json["slot"] = report.slot;
  if (report.end) json["end"] = ToJson(*report.end);
  if (report.saved) json["saved"] = true;
  if (report.work) json["work"] = WorkJson(*report.work);
  if (report.step) json["step"] = *report.step;
  if (report.lost_step) json["lost_step"] = *report.lost_step;
  if (!report.counts.empty()) json["counts"] = report.counts;
  if (!report.last_lines.empty()) json["last_lines"] = report.last_lines;
  if (!report.diagnosis.empty()) json["diagnosis"] = report.diagnosis;
  return json;
}

absl::StatusOr<AgentReport> ReportFromJson(const Json& json) {
  JsonFields fields(json, "report");
  AgentReport report;
  const auto task = job::ParseTaskName(fields.Text("task"));
  if (!task) fields.Fail("\"task\" names no task");
  report.task = task.value_or(job::TaskId{});
  report.incarnation = fields.Int("incarnation", 0, 1, kMaxInt64);
  if (report.incarnation == 0) fields.Fail("\"incarnation\" is missing");
  report.sequence = fields.Int("sequence", 0, 0, kMaxInt64);
  report.state = ParseState(fields);
  report.address = fields.Text("address");
  report.pid = static_cast<int>(fields.Int("pid", 0, 0, kMaxInt));
  report.child_pid = static_cast<int>(fields.Int("child_pid", 0, 0, kMaxInt));
  report.said = fields.Text("said");
  report.idle_seconds = fields.Number("idle_seconds", 0);
  report.cpu_seconds = fields.Number("cpu_seconds", 0);
  report.pss_bytes = fields.Int("pss_bytes", 0, 0, kMaxInt64);
  report.seen = fields.Int("seen", 0, 0, kMaxInt64);
  report.slot = fields.Text("slot");
  report.last_lines = fields.Texts("last_lines");
  if (report.last_lines.size() > kMaxLines) fields.Fail("\"last_lines\" are too many");
  report.diagnosis = fields.Texts("diagnosis");
  if (report.diagnosis.size() > kMaxLines) fields.Fail("\"diagnosis\" has too many lines");
  report.saved = fields.Bool("saved", false);
  if (fields.Has("work")) report.work = WorkFromJson(fields);
  if (fields.Has("step")) report.step = fields.Int("step", 0, 0, kMaxInt64);
  if (fields.Has("lost_step")) report.lost_step = fields.Int("lost_step", 0, 0, kMaxInt64);
  report.counts = ParseCounts(fields.Object("counts"));
  if (fields.Has("end")) {
    auto end = EndFromJson(fields.Object("end"), "report: end");
    fields.Update(end.status());
    if (end.ok()) report.end = *std::move(end);
  }
  if ((report.state == State::kEnded) != report.end.has_value()) {
    fields.Fail("\"end\" and \"state\" do not fit");
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return report;
}

Json ToJson(const AgentOrders& orders) {
  Json json = {{"version", orders.version},
               {"pause", orders.pause},
               {"stop", orders.stop},
               {"stop_reason", orders.stop_reason},
               {"diagnose", orders.diagnose},
               {"grace_seconds", orders.grace_seconds},
               {"lease_seconds", orders.lease_seconds},
               {"end_taken", orders.end_taken}};
  if (orders.start) json["start"] = StartJson(*orders.start);
  if (orders.held_seconds != 0) json["held_seconds"] = orders.held_seconds;
  return json;
}

Json NothingNew(int64_t version, double lease_seconds, double held_seconds) {
  return {{"version", version}, {"lease_seconds", lease_seconds}, {"held_seconds", held_seconds}};
}

absl::StatusOr<AgentOrders> OrdersFromJson(const Json& json) {
  JsonFields fields(json, "orders");
  AgentOrders orders;
  orders.version = fields.Int("version", 0, 0, kMaxInt64);
  orders.pause = fields.Bool("pause", false);
  orders.stop = fields.Bool("stop", false);
  orders.stop_reason = fields.Text("stop_reason");
  orders.diagnose = fields.Bool("diagnose", false);
  orders.grace_seconds = fields.Number("grace_seconds", 0);
  orders.lease_seconds = fields.Number("lease_seconds", 0);
  orders.end_taken = fields.Bool("end_taken", false);
  orders.held_seconds = fields.Number("held_seconds", 0);
  if (fields.Has("start")) orders.start = StartFromJson(fields);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return orders;
}

}  // namespace muster::control
