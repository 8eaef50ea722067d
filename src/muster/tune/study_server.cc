#include "muster/tune/study_server.h"

#include <cmath>
#include <limits>
#include <utility>

#include "muster/base/nearest.h"
#include "muster/tune/importance.h"

namespace muster::tune {
namespace {

using formats::JsonFields;

constexpr int64_t kMostInt = std::numeric_limits<int64_t>::max();
constexpr char kWhere[] = "a call of the study";

absl::Status Unknown(std::string_view what, const std::string& name,
                     const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(
      StrCat(kWhere, ": unknown ", what, " '", name, "'", DidYouMean(name, known)));
}

// The resource, value, records and step of a report or an end. A value that is null is not a
// number, as that of a training that diverged.
absl::StatusOr<Report> ParseValue(JsonFields& fields, int64_t next_resource) {
  const Report report = {.resource = fields.Int("resource", next_resource, 0, kMostInt),
                         .value = fields.Number("value", std::nan("")),
                         .records = static_cast<uint64_t>(fields.Int("records", 0, 0, kMostInt)),
                         .step = fields.Int("step", 0, 0, kMostInt)};
  MUSTER_RETURN_IF_ERROR(fields.status());
  return report;
}

// Whether the point has a value for each parameter that exists, and for no other.
absl::Status CheckWhole(const Space& space, const Point& point) {
  for (size_t i = 0; i < point.size(); ++i) {
    if (space.Exists(i, point) != IsAbsent(point[i])) continue;
    return absl::InvalidArgumentError(StrCat(kWhere, ": the parameters ",
                                             IsAbsent(point[i]) ? "lack '" : "may not have '",
                                             space.parameters[i].name, "'"));
  }
  return absl::OkStatus();
}

int64_t NextResource(const Trial& trial) {
  return trial.reports.empty() ? 1 : trial.reports.back().resource + 1;
}

}  // namespace

StudyServer::StudyServer(StudyJournal& journal, const Clock& clock)
    : journal_(journal), clock_(clock) {}

Json StudyServer::Answer(std::string_view line) {
  const auto call = formats::ParseJsonObject(line, kWhere);
  auto answer = call.ok() ? Do(*call) : absl::StatusOr<Json>(call.status());
  if (answer.ok()) return *std::move(answer);
  return {{"error", std::string(ToStd(answer.status().message()))}};
}

absl::StatusOr<Json> StudyServer::Do(const Json& call) {
  JsonFields fields(call, kWhere);
  const std::string name = fields.Text("call");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (name == "ask") return Ask(call);
  if (name == "report") return Report(call);
  if (name == "tell") return Tell(call);
  if (name == "describe") return Describe();
  return Unknown("call", name, {"ask", "report", "tell", "describe"});
}

absl::StatusOr<Json> StudyServer::Ask(const Json& call) {
  std::optional<Trial> trial;
  if (call.contains("parameters")) {
    JsonFields fields(call, kWhere);
    const Json& parameters = fields.Object("parameters");
    MUSTER_RETURN_IF_ERROR(fields.status());
    MUSTER_ASSIGN_OR_RETURN(const Point point, ParsePoint(journal_.spec().space, parameters));
    MUSTER_RETURN_IF_ERROR(CheckWhole(journal_.spec().space, point));
    MUSTER_ASSIGN_OR_RETURN(trial, journal_.Begin(point));
  } else {
    MUSTER_ASSIGN_OR_RETURN(trial, journal_.Next(nullptr));
  }
  if (!trial) return Json({{"end", journal_.GetSnapshot().end}});
  begun_[trial->number] = clock_.MonotonicNanos();
  return Json({{"trial", DescribeTrial(*trial)}});
}

absl::StatusOr<Trial> StudyServer::FindRunning(const Json& call) const {
  JsonFields fields(call, kWhere);
  const int64_t number = fields.Int("trial", -1, 0, kMostInt);
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (number < 0) return absl::InvalidArgumentError(StrCat(kWhere, ": names no trial"));
  MUSTER_ASSIGN_OR_RETURN(Trial trial, journal_.Find(number));
  if (trial.state == TrialState::kRunning) return trial;
  return absl::FailedPreconditionError(
      StrCat("trial ", number, " has ended already: it is ", StateName(trial.state)));
}

absl::StatusOr<Json> StudyServer::Report(const Json& call) {
  MUSTER_ASSIGN_OR_RETURN(const Trial trial, FindRunning(call));
  JsonFields fields(call, kWhere);
  MUSTER_ASSIGN_OR_RETURN(const tune::Report report, ParseValue(fields, NextResource(trial)));
  MUSTER_ASSIGN_OR_RETURN(const std::string stop, journal_.AddReport(trial.number, report));
  return Json({{"stop", stop}});
}

absl::StatusOr<Json> StudyServer::Tell(const Json& call) {
  MUSTER_ASSIGN_OR_RETURN(const Trial trial, FindRunning(call));
  JsonFields fields(call, kWhere);
  const std::string state = fields.Text("state", "complete");
  Outcome ended = {.trial = trial.number, .error = fields.Text("error")};
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (state == "stopped") {
    ended.state = TrialState::kStopped;
  } else if (state == "failed") {
    ended.state = TrialState::kFailed;
  } else if (state != "complete") {
    return Unknown("state", state, {"complete", "stopped", "failed"});
  }
  if (call.contains("value")) {
    // The value at the end is no report of its own where the trial has reported.
    const int64_t resource = trial.reports.empty() ? 1 : trial.reports.back().resource;
    MUSTER_ASSIGN_OR_RETURN(ended.last, ParseValue(fields, resource));
    ended.has_value = true;
  } else if (!trial.reports.empty()) {
    ended.last = trial.reports.back();
    ended.has_value = ended.state != TrialState::kFailed;
  } else if (ended.state != TrialState::kFailed) {
    return absl::InvalidArgumentError(
        StrCat(kWhere, ": trial ", trial.number, " has no value; give one, or the state failed"));
  }
  const auto begun = begun_.find(trial.number);
  if (begun != begun_.end()) {
    ended.seconds = static_cast<double>(clock_.MonotonicNanos() - begun->second) * 1e-9;
    begun_.erase(begun);
  }
  MUSTER_RETURN_IF_ERROR(journal_.Tell(ended));
  MUSTER_ASSIGN_OR_RETURN(const Trial after, journal_.Find(trial.number));
  return Json({{"trial", DescribeTrial(after)}});
}

Json StudyServer::Describe() const {
  const StudyJournal::Snapshot study = journal_.GetSnapshot();
  const StudySpec& spec = journal_.spec();
  Json trials = Json::array();
  for (const Trial& trial : study.history) trials.push_back(DescribeTrial(trial));
  Json importance = Json::object();
  for (const auto& [name, part] : MeasureImportance(spec.space, study.history, spec.goal)) {
    importance[name] = part;
  }
  const Trial* const best = FindBest(study.history, spec.goal);
  return {{"trials", std::move(trials)},
          {"best", best == nullptr ? Json(nullptr) : Json(best->number)},
          {"importance", std::move(importance)},
          {"end", study.end}};
}

Json StudyServer::DescribeTrial(const Trial& trial) const {
  Json reports = Json::array();
  for (const tune::Report& report : trial.reports) {
    reports.push_back(Json::array({report.resource, NumberJson(report.value)}));
  }
  Json json = {{"number", trial.number},
               {"state", StateName(trial.state)},
               {"parameters", PointJson(journal_.spec().space, trial.point)},
               {"value", trial.value ? NumberJson(*trial.value) : Json(nullptr)},
               {"reports", std::move(reports)},
               {"seconds", trial.seconds}};
  if (trial.origin.member >= 0) {
    json["member"] = trial.origin.member;
    json["parent"] = trial.origin.parent < 0 ? Json(nullptr) : Json(trial.origin.parent);
  }
  if (!trial.stop.empty()) json["stop"] = trial.stop;
  if (!trial.error.empty()) json["error"] = trial.error;
  return json;
}

}  // namespace muster::tune
