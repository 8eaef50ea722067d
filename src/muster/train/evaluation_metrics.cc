#include "muster/train/evaluation_metrics.h"

#include "muster/base/strings.h"
#include "muster/model/model.h"

namespace muster::train {

absl::StatusOr<EvaluationMetrics> EvaluationMetrics::Create(const ModeModel& mode,
                                                            const EvalSpec& spec) {
  const model::ModelSpec& model = mode.model.spec;
  EvaluationMetrics metrics;
  MUSTER_ASSIGN_OR_RETURN(metrics.head_,
                          model::NewMetrics(mode.model, spec.metrics.value_or(model.metrics)));
  for (const auto& [name, make] : mode.custom.eval_metrics) {
    metrics.custom_.emplace_back(name, make());
  }
  return metrics;
}

void EvaluationMetrics::Add(const engine::Forward& forward, const InputBatch& batch) {
  const features::FeatureBatch& features = batch.features;
  head_->AddGroups(batch.groups);
  head_->Add(forward, features);
  for (auto& [name, metric] : custom_) {
    metric->Add(forward.logits, features.labels, features.weights);
  }
}

absl::Status EvaluationMetrics::CheckMergeable() const {
  if (custom_.empty()) return absl::OkStatus();
  return absl::UnimplementedError(StrCat("evaluating in parts: metric '", custom_[0].first,
                                         "' of the model function has no state"));
}

std::vector<metrics::NamedValue> EvaluationMetrics::Values() const {
  std::vector<metrics::NamedValue> values = head_->Values();
  for (const auto& [name, metric] : custom_) {
    std::erase_if(values, [&, custom = name](const auto& value) { return value.first == custom; });
    values.insert(values.end() - 1, {name, metric->Value()});
  }
  return values;
}

}  // namespace muster::train
