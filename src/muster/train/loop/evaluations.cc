#include "muster/train/loop/evaluations.h"

#include "muster/base/nearest.h"
#include "muster/formats/event.h"

namespace muster::train {

absl::StatusOr<std::map<int64_t, Metrics>> ReadEvaluations(io::FileSystem& files,
                                                           const std::string& folder) {
  std::map<int64_t, Metrics> evaluations;
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (absl::IsNotFound(names.status())) return evaluations;
  MUSTER_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (name.find("tfevents") == std::string::npos) continue;
    const auto events = formats::ReadScalarEvents(files, io::JoinPath(folder, name));
    if (absl::IsDataLoss(events.status())) continue;
    MUSTER_RETURN_IF_ERROR(events.status());
    for (const formats::ScalarEvent& event : *events) {
      evaluations[event.step][event.tag] = event.value;
    }
  }
  return evaluations;
}

absl::StatusOr<double> FindMetric(const Metrics& metrics, const std::string& name,
                                  const std::string& user) {
  const auto found = metrics.find(name);
  if (found != metrics.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [metric, value] : metrics) known.push_back(metric);
  return absl::InvalidArgumentError(
      StrCat(user, ": the evaluation has no metric '", name, "'", DidYouMean(name, known)));
}

absl::Status CheckMetric(const model::ModelSpec& model, const std::string& metric,
                         const std::string& user) {
  Metrics known;
  if (model.exported) {
    for (const auto& each : model.exported->metrics) known[each.name] = 0;
    known["loss"] = 0;
  } else {
    MUSTER_ASSIGN_OR_RETURN(const auto metrics, metrics::NewMetrics(model.head, model.metrics,
                                                                    model.features.label.words));
    for (const auto& [name, value] : metrics->Values()) known[name] = value;
  }
  return FindMetric(known, metric, user).status();
}

}  // namespace muster::train
