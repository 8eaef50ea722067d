#include "muster/membership/view.h"

#include <limits>
#include <utility>

namespace muster::membership {
namespace {

using formats::JsonFields;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxText = 10'000;

Json ToJson(const MemberId& id) {
  return {{"task", job::TaskName(id.task)}, {"incarnation", id.incarnation}};
}

Json ToJson(const Member& member) {
  Json json = ToJson(member.id);
  json["address"] = member.address;
  json["step"] = member.step;
  json["state_epoch"] = member.state_generation;
  return json;
}

Json ToJson(const Broken& broken) {
  Json json = ToJson(broken.culprit);
  json["epoch"] = broken.generation;
  json["cause"] = broken.cause;
  json["planned"] = broken.planned;
  if (broken.seen_by) json["seen_by"] = ToJson(*broken.seen_by);
  return json;
}

Json ToJson(const View& view) {
  Json members = Json::array();
  for (const Member& member : view.members) members.push_back(ToJson(member));
  return {{"epoch", view.generation}, {"replicas", view.replicas}, {"members", std::move(members)}};
}

Json ToJson(const ViewChange& change) {
  Json gone = Json::array(), members = Json::array(), states = Json::array();
  for (const job::TaskId task : change.gone) gone.push_back(job::TaskName(task));
  for (const Member& member : change.members) members.push_back(ToJson(member));
  for (const ViewChange::Run& run : change.states) {
    states.push_back({{"members", run.members},
                      {"step", run.state.step},
                      {"state_epoch", run.state.generation}});
  }
  return {{"epoch", change.generation},    {"base", change.base},
          {"replicas", change.replicas},   {"gone", std::move(gone)},
          {"members", std::move(members)}, {"states", std::move(states)}};
}

std::string BoundedText(JsonFields& fields, const char* name) {
  std::string text = fields.Text(name);
  if (text.size() > kMaxText) fields.Fail(StrCat("\"", name, "\" is too long"));
  return text;
}

MemberId ParseId(JsonFields& fields) {
  const auto task = job::ParseTaskName(fields.Text("task"));
  if (!task) fields.Fail("\"task\" must be a task's name, such as worker-1");
  return {.task = task.value_or(job::TaskId{}),
          .incarnation = fields.Int("incarnation", 0, 0, kMax)};
}

Member ParseMember(JsonFields& fields) {
  return {.id = ParseId(fields),
          .address = BoundedText(fields, "address"),
          .step = fields.Int("step", -1, -1, kMax),
          .state_generation = fields.Int("state_epoch", 0, 0, kMax)};
}

Broken ParseBroken(const Json& json, JsonFields* outer) {
  JsonFields fields(json, StrCat(outer->where(), ": broken"));
  Broken broken = {.generation = fields.Int("epoch", 0, 0, kMax),
                   .culprit = ParseId(fields),
                   .cause = BoundedText(fields, "cause"),
                   .planned = fields.Bool("planned", false)};
  if (fields.Has("seen_by")) {
    JsonFields seer(fields.Object("seen_by"), StrCat(fields.where(), ": seen_by"));
    broken.seen_by = ParseId(seer);
    fields.Update(seer.status());
  }
  outer->Update(fields.status());
  return broken;
}

Join ParseJoin(const Json& json, JsonFields* outer) {
  JsonFields fields(json, StrCat(outer->where(), ": join"));
  Join join = {.member = ParseMember(fields),
               .last_generation = fields.Int("last_epoch", 0, 0, kMax - 1),
               .known_view = fields.Int("view_epoch", 0, 0, kMax),
               .agreement = BoundedText(fields, "agreement")};
  outer->Update(fields.status());
  return join;
}

int64_t ParseGeneration(JsonFields& fields) {
  const int64_t generation = fields.Int("epoch", 0, 1, kMax);
  if (generation < 1) fields.Fail("has no generation");
  return generation;
}

// Calls parse(fields) for each object of a list that has at most kMaxMembers.
template <typename Parse>
void ParseEach(JsonFields& fields, const char* name, Parse parse) {
  const Json& list = fields.List(name);
  if (list.size() > kMaxMembers) fields.Fail(StrCat("has too many ", name));
  if (!fields.status().ok()) return;
  for (const Json& each : list) {
    JsonFields one(each, StrCat(fields.where(), ": ", name));
    parse(one);
    fields.Update(one.status());
  }
}

ViewChange ParseChange(const Json& json, JsonFields* outer) {
  JsonFields fields(json, StrCat(outer->where(), ": change"));
  ViewChange change = {
      .generation = ParseGeneration(fields),
      .base = fields.Int("base", 0, 1, kMax),
      .replicas = static_cast<int>(fields.Int("replicas", 0, 0, int64_t{kMaxMembers}))};
  if (change.base < 1) fields.Fail("has no base");
  const std::vector<std::string> gone = fields.Texts("gone");
  if (gone.size() > kMaxMembers) fields.Fail("has too many \"gone\"");
  for (const std::string& name : gone) {
    const auto task = job::ParseTaskName(name);
    if (!task) fields.Fail("\"gone\" must be names of tasks, such as worker-1");
    change.gone.push_back(task.value_or(job::TaskId{}));
  }
  ParseEach(fields, "members",
            [&](JsonFields& member) { change.members.push_back(ParseMember(member)); });
  ParseEach(fields, "states", [&](JsonFields& run) {
    change.states.push_back({.members = run.Int("members", 0, 1, int64_t{kMaxMembers}),
                             .state = {.step = run.Int("step", -1, -1, kMax),
                                       .generation = run.Int("state_epoch", 0, 0, kMax)}});
    if (change.states.back().members < 1) run.Fail("has no members");
  });
  outer->Update(fields.status());
  return change;
}

View ParseView(const Json& json, JsonFields* outer) {
  JsonFields fields(json, StrCat(outer->where(), ": view"));
  View view = {.generation = ParseGeneration(fields)};
  if (fields.List("members").empty()) fields.Fail("has no members");
  ParseEach(fields, "members",
            [&](JsonFields& member) { view.members.push_back(ParseMember(member)); });
  view.replicas =
      static_cast<int>(fields.Int("replicas", 0, 0, static_cast<int64_t>(view.members.size())));
  outer->Update(fields.status());
  return view;
}

}  // namespace

std::string Describe(const MemberId& id) {
  const std::string name = job::TaskName(id.task);
  return id.incarnation == 0 ? name : StrCat(name, " (incarnation ", id.incarnation, ")");
}

int View::GetRank(job::TaskId task) const {
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].id.task == task) return static_cast<int>(i);
  }
  return -1;
}

int View::source() const {
  int best = 0;
  for (int rank = 1; rank < replicas; ++rank) {
    if (members[static_cast<size_t>(best)].state() < members[static_cast<size_t>(rank)].state()) {
      best = rank;
    }
  }
  return best;
}

absl::Status ToStatus(const Broken& broken) {
  return absl::AbortedError(
      StrCat("generation ", broken.generation, ": ", Describe(broken.culprit), " ", broken.cause));
}

std::string Print(const Message& message) {
  Json json = Json::object();
  if (message.join) {
    Json join = ToJson(message.join->member);
    join["last_epoch"] = message.join->last_generation;
    join["view_epoch"] = message.join->known_view;
    join["agreement"] = message.join->agreement;
    json["join"] = std::move(join);
  }
  if (message.failure) json["failure"] = ToJson(*message.failure);
  if (message.leave) json["leave"] = true;
  if (message.away) json["away"] = true;
  if (message.trained) json["trained"] = true;
  if (message.view) json["view"] = ToJson(*message.view);
  if (message.change) json["change"] = ToJson(*message.change);
  if (message.broken) json["broken"] = ToJson(*message.broken);
  if (!message.refused.empty()) json["refused"] = message.refused;
  if (!message.waiting.empty()) json["waiting"] = message.waiting;
  return formats::PrintJson(json);
}

absl::StatusOr<Message> Parse(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(text, "membership message"));
  JsonFields fields(json, "membership message");
  Message message;
  if (fields.Has("join")) message.join = ParseJoin(fields.Object("join"), &fields);
  if (fields.Has("failure")) message.failure = ParseBroken(fields.Object("failure"), &fields);
  message.leave = fields.Bool("leave", false);
  message.away = fields.Bool("away", false);
  message.trained = fields.Bool("trained", false);
  if (fields.Has("view")) message.view = ParseView(fields.Object("view"), &fields);
  if (fields.Has("change")) message.change = ParseChange(fields.Object("change"), &fields);
  if (fields.Has("broken")) message.broken = ParseBroken(fields.Object("broken"), &fields);
  message.refused = BoundedText(fields, "refused");
  message.waiting = BoundedText(fields, "waiting");
  MUSTER_RETURN_IF_ERROR(fields.status());
  return message;
}

}  // namespace muster::membership
