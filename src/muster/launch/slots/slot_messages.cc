#include "muster/launch/slots/slot_messages.h"

#include <limits>
#include <set>

namespace muster::launch::slots {
namespace {

using formats::JsonFields;

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinInt = std::numeric_limits<int>::min();
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr size_t kMaxSlots = 100'000;
constexpr size_t kMaxText = 1000;  // longer ones for people are cut
constexpr size_t kMaxSlotId = 256;

struct StateWord {
  Slot::State state;
  const char* word;
};
constexpr StateWord kStates[] = {{Slot::State::kAsked, "asked"},
                                 {Slot::State::kRunning, "running"},
                                 {Slot::State::kEnded, "ended"}};

job::TaskId ParseTask(JsonFields& fields) {
  const std::string name = fields.Text("task");
  const auto task = job::ParseTaskName(name);
  if (!task) fields.Fail(StrCat("\"task\" '", name, "' names none"));
  return task.value_or(job::TaskId{});
}

int64_t ParseIncarnation(JsonFields& fields) {
  const int64_t incarnation = fields.Int("incarnation", 0, 1, kMaxInt64);
  if (incarnation == 0) fields.Fail("\"incarnation\" is missing");
  return incarnation;
}

// How a slot or a process has ended.
template <typename Ended>
void AddEnd(const Ended& ended, Json* json) {
  if (ended.exit_code != 0) (*json)["exit"] = ended.exit_code;
  if (ended.disrupted) (*json)["disrupted"] = true;
  if (!ended.detail.empty()) (*json)["detail"] = ended.detail;
}

template <typename Ended>
void ParseEnd(JsonFields& fields, Ended* ended) {
  ended->exit_code = static_cast<int>(fields.Int("exit", 0, kMinInt, kMaxInt));
  ended->disrupted = fields.Bool("disrupted", false);
  ended->detail = fields.Text("detail").substr(0, kMaxText);
}

std::string ParseProcess(JsonFields& fields) {
  std::string process = fields.Text("process");
  if (process.size() > kMaxSlotId) {
    fields.Fail(StrCat("\"process\" is longer than ", kMaxSlotId, " bytes"));
  }
  return process;
}

EndedProcess EndedFromJson(const Json& json, JsonFields& report) {
  JsonFields fields(json, "report: ended");
  EndedProcess ended{.process = ParseProcess(fields)};
  if (ended.process.empty()) fields.Fail("\"process\" is missing");
  ParseEnd(fields, &ended);
  report.Update(fields.status());
  return ended;
}

Json SlotJson(const Slot& slot) {
  Json json = {
      {"slot", slot.id}, {"task", job::TaskName(slot.task)}, {"incarnation", slot.incarnation}};
  for (const auto& [state, word] : kStates) {
    if (state == slot.state) json["state"] = word;
  }
  if (!slot.host.empty()) json["host"] = slot.host;
  if (!slot.process.empty()) json["process"] = slot.process;
  AddEnd(slot, &json);
  return json;
}

Slot SlotFromJson(const Json& json, JsonFields& report) {
  JsonFields fields(json, "report: slots");
  Slot slot;
  slot.id = fields.Text("slot");
  if (slot.id.empty()) fields.Fail("\"slot\" is missing");
  if (slot.id.size() > kMaxSlotId) {
    fields.Fail(StrCat("\"slot\" is longer than ", kMaxSlotId, " bytes"));
  }
  slot.task = ParseTask(fields);
  slot.incarnation = ParseIncarnation(fields);
  const std::string state = fields.Text("state");
  bool is_known = false;
  for (const auto& [each, word] : kStates) {
    if (state != word) continue;
    slot.state = each;
    is_known = true;
  }
  if (!is_known) fields.Fail(StrCat("\"state\" '", state, "' is not asked, running or ended"));
  slot.host = fields.Text("host").substr(0, kMaxText);
  slot.process = ParseProcess(fields);
  ParseEnd(fields, &slot);
  report.Update(fields.status());
  return slot;
}

Json WantedJson(const WantedSlot& wanted) {
  Json json = {{"task", job::TaskName(wanted.task)},
               {"incarnation", wanted.incarnation},
               {"lease_seconds", wanted.lease_seconds}};
  if (wanted.port != 0) json["port"] = wanted.port;
  if (wanted.port_required) json["port_required"] = true;
  if (wanted.cpus > 0) json["cores"] = wanted.cpus;
  if (wanted.memory_bytes > 0) json["memory_bytes"] = wanted.memory_bytes;
  if (wanted.gpus > 0) json["gpus"] = wanted.gpus;
  return json;
}

WantedSlot WantedFromJson(const Json& json, JsonFields& answer) {
  JsonFields fields(json, "answer: wanted");
  WantedSlot wanted;
  wanted.task = ParseTask(fields);
  wanted.incarnation = ParseIncarnation(fields);
  wanted.lease_seconds = fields.Number("lease_seconds", 0);
  wanted.port = static_cast<int>(fields.Int("port", 0, 0, 65535));
  wanted.port_required = fields.Bool("port_required", false);
  wanted.cpus = fields.Number("cores", 0);
  wanted.memory_bytes = fields.Int("memory_bytes", 0, 0, kMaxInt64);
  wanted.gpus = static_cast<int>(fields.Int("gpus", 0, 0, kMaxInt));
  answer.Update(fields.status());
  return wanted;
}

}  // namespace

Json ToJson(const ProviderReport& report) {
  Json json = {{"provider", report.provider},
               {"attempt", report.attempt},
               {"sequence", report.sequence},
               {"slots", Json::array()}};
  if (!report.gives.empty()) json["gives"] = report.gives;
  for (const Slot& slot : report.slots) json["slots"].push_back(SlotJson(slot));
  for (const EndedProcess& each : report.ended) {
    Json ended = {{"process", each.process}};
    AddEnd(each, &ended);
    json["ended"].push_back(std::move(ended));
  }
  return json;
}

absl::StatusOr<ProviderReport> ReportFromJson(const Json& json) {
  JsonFields fields(json, "report");
  ProviderReport report;
  report.provider = fields.Text("provider").substr(0, kMaxText);
  report.gives = fields.Text("gives").substr(0, kMaxText);
  report.attempt = fields.Int("attempt", 0, 1, kMaxInt64);
  if (report.attempt == 0) fields.Fail("\"attempt\" is missing");
  report.sequence = fields.Int("sequence", 0, 1, kMaxInt64);
  if (report.sequence == 0) fields.Fail("\"sequence\" is missing");
  const Json& slots = fields.List("slots");
  if (!fields.Has("slots")) fields.Fail("\"slots\" is missing: say all, or none by []");
  if (slots.size() > kMaxSlots) fields.Fail("\"slots\" are too many");
  MUSTER_RETURN_IF_ERROR(fields.status());
  std::set<std::string> ids;
  for (const Json& each : slots) {
    report.slots.push_back(SlotFromJson(each, fields));
    if (!ids.insert(report.slots.back().id).second) {
      fields.Fail(StrCat("the slot ", report.slots.back().id, " is there twice"));
    }
    MUSTER_RETURN_IF_ERROR(fields.status());
  }
  const Json& ended = fields.List("ended");
  if (ended.size() > kMaxSlots) fields.Fail("\"ended\" are too many");
  for (size_t i = 0; i < ended.size() && fields.status().ok(); ++i) {
    report.ended.push_back(EndedFromJson(ended[i], fields));
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return report;
}

Json ToJson(const ProviderAnswer& answer) {
  Json json = {{"sequence", answer.sequence},
               {"wanted", Json::array()},
               {"kill", answer.kill},
               {"forget", answer.forget}};
  if (answer.superseded) json["superseded"] = true;
  for (const WantedSlot& wanted : answer.wanted) json["wanted"].push_back(WantedJson(wanted));
  if (!answer.final.empty()) json["final"] = answer.final;
  return json;
}

absl::StatusOr<ProviderAnswer> AnswerFromJson(const Json& json) {
  JsonFields fields(json, "answer");
  ProviderAnswer answer;
  answer.sequence = fields.Int("sequence", 0, 0, kMaxInt64);
  answer.superseded = fields.Bool("superseded", false);
  answer.kill = fields.Texts("kill");
  answer.forget = fields.Texts("forget");
  answer.final = fields.Text("final");
  for (const Json& each : fields.List("wanted"))
    answer.wanted.push_back(WantedFromJson(each, fields));
  MUSTER_RETURN_IF_ERROR(fields.status());
  return answer;
}

}  // namespace muster::launch::slots
