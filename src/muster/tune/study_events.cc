#include "muster/tune/study_events.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

#include "muster/formats/event.h"
#include "muster/formats/hparams.h"
#include "muster/tune/command_objective.h"

namespace muster::tune {
namespace {

using formats::HparamInfo;

// Whether all values of the parameter are of one JSON type that the page has; else they are shown
// as text.
template <typename Is>
bool All(const Parameter& parameter, const Is& is) {
  return std::ranges::all_of(parameter.choices, is);
}

HparamInfo::Type GetType(const Parameter& parameter) {
  if (parameter.kind != Parameter::Kind::kChoice) return HparamInfo::Type::kNumber;
  if (All(parameter, [](const Json& choice) { return choice.is_number(); })) {
    return HparamInfo::Type::kNumber;
  }
  if (All(parameter, [](const Json& choice) { return choice.is_boolean(); })) {
    return HparamInfo::Type::kBool;
  }
  return HparamInfo::Type::kString;
}

formats::HparamValue GetValue(const Parameter& parameter, double value) {
  const Json json = ValueJson(parameter, value);
  switch (GetType(parameter)) {
    case HparamInfo::Type::kNumber:
      return json.get<double>();
    case HparamInfo::Type::kBool:
      return json.get<bool>();
    case HparamInfo::Type::kString:
      return ValueText(json);
  }
  return "";
}

std::string TrialFolder(const std::string& folder, const Trial& trial) {
  return io::JoinPath(folder, absl::StrFormat("trial-%04d", trial.number));
}

}  // namespace

absl::Status WriteExperiment(io::FileSystem& files, const Clock& clock, const std::string& folder,
                             const StudySpec& spec) {
  if (const auto names = files.List(folder); names.ok()) {
    const bool has = std::ranges::any_of(
        *names, [](const std::string& name) { return name.starts_with("events."); });
    if (has) return absl::OkStatus();
  }
  formats::HparamExperiment experiment;
  experiment.created_seconds = clock.WallSeconds();
  for (const Parameter& parameter : spec.space.parameters) {
    experiment.settings.push_back({parameter.name, GetType(parameter), /*differs=*/true});
  }
  experiment.metrics.push_back({"", spec.goal.metric, spec.goal.metric});
  formats::Summary summary;
  AddHparamExperiment(experiment, &summary);
  formats::EventWriter events(files, folder, clock);
  MUSTER_RETURN_IF_ERROR(events.WriteSummary(0, summary));
  return events.Close();
}

absl::Status WriteTrialEvents(io::FileSystem& files, const Clock& clock, const std::string& folder,
                              const StudySpec& spec, const Trial& trial) {
  const std::string own = TrialFolder(folder, trial);
  MUSTER_RETURN_IF_ERROR(files.RemoveAll(own));
  std::vector<formats::Hparam> values;
  for (size_t i = 0; i < trial.point.size(); ++i) {
    if (IsAbsent(trial.point[i])) continue;
    const Parameter& parameter = spec.space.parameters[i];
    values.push_back({parameter.name, GetValue(parameter, trial.point[i])});
  }
  const double now = clock.WallSeconds();
  formats::EventWriter events(files, own, clock);
  formats::Summary start;
  AddHparamSessionStart(values, now - trial.seconds, &start);
  MUSTER_RETURN_IF_ERROR(events.WriteSummary(0, start));
  for (const Report& report : trial.reports) {
    if (!std::isfinite(report.value)) continue;
    MUSTER_RETURN_IF_ERROR(events.WriteScalars(
        report.resource, {{spec.goal.metric, static_cast<float>(report.value)}}));
  }
  formats::Summary end;
  AddHparamSessionEnd(trial.state == TrialState::kFailed ? formats::HparamStatus::kFailure
                                                         : formats::HparamStatus::kSuccess,
                      now, &end);
  MUSTER_RETURN_IF_ERROR(events.WriteSummary(0, end));
  return events.Close();
}

absl::Status WriteMissingTrialEvents(io::FileSystem& files, const Clock& clock,
                                     const std::string& folder, const StudySpec& spec,
                                     const History& history) {
  for (const Trial& trial : history) {
    if (trial.state == TrialState::kRunning) continue;
    if (files.Stat(TrialFolder(folder, trial)).ok()) continue;
    MUSTER_RETURN_IF_ERROR(WriteTrialEvents(files, clock, folder, spec, trial));
  }
  return absl::OkStatus();
}

}  // namespace muster::tune
