#include "muster/tune/study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/number_text.h"

namespace muster::tune {
namespace {

constexpr int64_t kMostInt = std::numeric_limits<int64_t>::max();

absl::Status Damaged(const Json& event, std::string_view why) {
  return absl::DataLossError(StrCat("event ", formats::PrintJson(event), ": ", why));
}

double NumberOr(const Json& event, const char* name, double fallback) {
  const auto found = event.find(name);
  return found != event.end() && found->is_number() ? found->get<double>() : fallback;
}

absl::StatusOr<Report> ParseReport(const Json& event) {
  formats::JsonFields fields(event, "a study's event");
  Report report = {.resource = fields.Int("resource", 0, 0, kMostInt),
                   .value = NumberOr(event, "value", std::nan("")),
                   .records = static_cast<uint64_t>(fields.Int("records", 0, 0, kMostInt)),
                   .step = fields.Int("step", 0, 0, kMostInt)};
  if (!fields.status().ok()) return Damaged(event, ToStd(fields.status().message()));
  return report;
}

std::optional<TrialState> FindState(std::string_view name) {
  for (const TrialState state :
       {TrialState::kComplete, TrialState::kStopped, TrialState::kFailed}) {
    if (name == StateName(state)) return state;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Study>> Study::Create(StudySpec spec) {
  std::unique_ptr<Study> study(new Study(std::move(spec)));
  const StudySpec& own = study->spec_;
  MUSTER_ASSIGN_OR_RETURN(study->sampler_, NewSampler(own.sampler, own.space, own.goal, own.seed));
  study->scheduler_ = NewScheduler(own.scheduler, own.goal);
  if (own.scheduler.kind == SchedulerSpec::Kind::kPbt) {
    study->population_.emplace(own.scheduler, own.space, own.goal, own.seed);
  }
  return study;
}

std::optional<int64_t> Study::Ask(double elapsed, std::vector<Json>* events) {
  while (!waiting_.empty()) {
    const int64_t number = waiting_.front();
    waiting_.pop_front();
    const Trial& trial = history_[static_cast<size_t>(number)];
    if (trial.stop.empty()) return number;
    // It was told to stop before its process was killed, and its last report is its result.
    const Report& last = trial.reports.back();
    Tell({.trial = number, .state = TrialState::kStopped, .has_value = true, .last = last}, elapsed,
         events);
  }
  if (end_.empty()) end_ = WhyEnd(elapsed);
  if (!end_.empty()) return std::nullopt;
  if (population_) {
    const std::optional<Successor> next = population_->Next(history_);
    if (!next) return std::nullopt;
    return BeginTrial(next->point, next->member, next->parent, events);
  }
  const auto number = static_cast<int64_t>(history_.size());
  const std::optional<Point> point = sampler_->Next(history_, number);
  if (!point) {
    end_ = "all points of the grid were tried";
    return std::nullopt;
  }
  return BeginTrial(*point, -1, -1, events);
}

int64_t Study::Begin(const Point& point, std::vector<Json>* events) {
  const bool is_member = population_ && members_ < spec_.scheduler.population;
  return BeginTrial(point, is_member ? members_ : -1, -1, events);
}

int64_t Study::BeginTrial(const Point& point, int64_t member, int64_t parent,
                          std::vector<Json>* events) {
  const auto number = static_cast<int64_t>(history_.size());
  Json event = {{"event", "trial"}, {"trial", number}, {"point", PointJson(spec_.space, point)}};
  if (member >= 0) event["member"] = member;
  if (parent >= 0) event["parent"] = parent;
  Emit(std::move(event), events);
  return number;
}

std::string Study::AddReport(int64_t trial, const Report& report, double elapsed,
                             std::vector<Json>* events) {
  Trial& running = history_[static_cast<size_t>(trial)];
  if (!running.reports.empty() && report.resource <= running.reports.back().resource) {
    return running.stop;
  }
  Json event = {{"event", "report"},           {"trial", trial},
                {"resource", report.resource}, {"value", NumberJson(report.value)},
                {"records", report.records},   {"step", report.step}};
  running.reports.push_back(report);
  std::string stop = scheduler_->WhyStop(history_, running);
  running.reports.pop_back();
  if (stop.empty() && spec_.budget.seconds > 0 && elapsed >= spec_.budget.seconds) {
    stop = StrCat("budget: ", FormatDuration(spec_.budget.seconds), " are over");
  }
  if (!stop.empty()) event["stop"] = stop;
  Emit(std::move(event), events);
  return running.stop;
}

void Study::Tell(const Outcome& outcome, double elapsed, std::vector<Json>* events) {
  Json event = {{"event", "end"},
                {"trial", outcome.trial},
                {"state", StateName(outcome.state)},
                {"records", outcome.last.records},
                {"step", outcome.last.step},
                {"seconds", outcome.seconds},
                {"elapsed", elapsed}};
  if (outcome.has_value) {
    event["resource"] = outcome.last.resource;
    event["value"] = NumberJson(outcome.last.value);
  }
  if (!outcome.error.empty()) event["error"] = outcome.error;
  Emit(std::move(event), events);
}

void Study::Emit(Json event, std::vector<Json>* events) {
  const absl::Status applied = Apply(event);
  (void)applied;  // an event of this study follows from its state
  events->push_back(std::move(event));
}

absl::Status Study::Apply(const Json& event) {
  const auto kind = event.find("event");
  if (kind != event.end() && kind->is_string()) {
    if (*kind == "trial") return ApplyTrial(event);
    if (*kind == "report") return ApplyReport(event);
    if (*kind == "end") return ApplyEnd(event);
  }
  return Damaged(event, "of an unknown kind");
}

absl::Status Study::ApplyTrial(const Json& event) {
  formats::JsonFields fields(event, "a study's event");
  const int64_t number = fields.Int("trial", -1, 0, kMostInt);
  auto point = ParsePoint(spec_.space, fields.Object("point"));
  if (!fields.status().ok() || number != static_cast<int64_t>(history_.size())) {
    return Damaged(event, "its number is not the next one");
  }
  if (!point.ok()) return Damaged(event, ToStd(point.status().message()));
  Trial trial = {.number = number, .point = *std::move(point)};
  MUSTER_RETURN_IF_ERROR(SetOrigin(event, &trial));
  members_ = std::max(members_, trial.origin.member + 1);
  history_.push_back(std::move(trial));
  ++counts_[static_cast<size_t>(TrialState::kRunning)];
  return absl::OkStatus();
}

absl::Status Study::SetOrigin(const Json& event, Trial* trial) const {
  formats::JsonFields fields(event, "a study's event");
  Origin& origin = trial->origin;
  origin.member = fields.Int("member", -1, 0, members_);
  origin.parent = fields.Int("parent", -1, 0, trial->number - 1);
  if (!fields.status().ok()) return Damaged(event, ToStd(fields.status().message()));
  if (origin.member < 0) return absl::OkStatus();
  for (auto before = history_.rbegin(); before != history_.rend(); ++before) {
    if (before->origin.member != origin.member) continue;
    origin.generation = before->origin.generation + 1;
    break;
  }
  if (origin.parent < 0) return absl::OkStatus();
  const Trial& parent = history_[static_cast<size_t>(origin.parent)];
  origin.step = parent.step;
  origin.records = parent.origin.records + parent.records;
  return absl::OkStatus();
}

absl::StatusOr<Trial*> Study::FindRunning(const Json& event) {
  formats::JsonFields fields(event, "a study's event");
  const int64_t number = fields.Int("trial", -1, -1, kMostInt);
  if (number < 0 || number >= static_cast<int64_t>(history_.size()) ||
      history_[static_cast<size_t>(number)].state != TrialState::kRunning) {
    return Damaged(event, "no such trial is running");
  }
  return &history_[static_cast<size_t>(number)];
}

absl::Status Study::ApplyReport(const Json& event) {
  MUSTER_ASSIGN_OR_RETURN(Trial* const trial, FindRunning(event));
  MUSTER_ASSIGN_OR_RETURN(const Report report, ParseReport(event));
  formats::JsonFields fields(event, "a study's event");
  const std::string stop = fields.Text("stop");
  if (!fields.status().ok()) return Damaged(event, ToStd(fields.status().message()));
  CountRecords(*trial, report.records);
  trial->reports.push_back(report);
  trial->stop = stop;
  return absl::OkStatus();
}

absl::Status Study::ApplyEnd(const Json& event) {
  MUSTER_ASSIGN_OR_RETURN(Trial* const trial, FindRunning(event));
  MUSTER_ASSIGN_OR_RETURN(const Report last, ParseReport(event));
  formats::JsonFields fields(event, "a study's event");
  const auto state = FindState(fields.Text("state"));
  trial->seconds = fields.Number("seconds", 0);
  trial->error = fields.Text("error");
  const double elapsed = fields.Number("elapsed", 0);
  if (!fields.status().ok()) return Damaged(event, ToStd(fields.status().message()));
  if (!state) return Damaged(event, "of an unknown state");
  CountRecords(*trial, last.records);
  trial->state = *state;
  trial->step = last.step;
  trial->records = last.records;
  if (event.contains("value")) {
    trial->value = last.value;
    const bool is_new = trial->reports.empty() || trial->reports.back().resource < last.resource;
    if (is_new) trial->reports.push_back(last);
  }
  elapsed_ = std::max(elapsed_, elapsed);
  --counts_[static_cast<size_t>(TrialState::kRunning)];
  ++counts_[static_cast<size_t>(*state)];
  return absl::OkStatus();
}

void Study::CountRecords(const Trial& trial, uint64_t records) {
  const uint64_t before = trial.reports.empty() ? 0 : trial.reports.back().records;
  if (records > before) records_ += records - before;
}

void Study::RequeueRunning() {
  waiting_.clear();
  for (const Trial& trial : history_) {
    if (trial.state == TrialState::kRunning) waiting_.push_back(trial.number);
  }
}

bool Study::AllFail() const {
  return Count(TrialState::kFailed) >= kMostFailures && Count(TrialState::kComplete) == 0 &&
         Count(TrialState::kStopped) == 0;
}

std::string Study::WhyEnd(double elapsed) const {
  const Budget& budget = spec_.budget;
  if (AllFail()) return "the first trials failed";
  if (budget.trials > 0 && static_cast<int64_t>(history_.size()) >= budget.trials) {
    return absl::StrFormat("%d trials, as the budget says", budget.trials);
  }
  if (budget.records > 0 && records_ >= budget.records) {
    return absl::StrFormat("%d records were read, of %d in the budget", records_, budget.records);
  }
  if (budget.seconds > 0 && elapsed >= budget.seconds) {
    return StrCat("the budget's ", FormatDuration(budget.seconds), " are over");
  }
  return "";
}

absl::Status Study::status() const {
  if (!AllFail()) return absl::OkStatus();
  for (const Trial& trial : history_) {
    if (trial.state != TrialState::kFailed) continue;
    return absl::FailedPreconditionError(StrCat("the first ", Count(TrialState::kFailed),
                                                " trials failed, trial ", trial.number,
                                                " with: ", trial.error));
  }
  return absl::OkStatus();
}

}  // namespace muster::tune
