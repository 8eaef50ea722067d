#include "muster/metrics/binary.h"

#include <algorithm>

#include "muster/engine/predictions.h"
#include "muster/metrics/head_metrics.h"

namespace muster::metrics {
namespace {

constexpr char kHead[] = "binary";

}  // namespace

void BinaryMetrics::Add(std::span<const float> logits, std::span<const float> labels,
                        std::span<const float> weights) {
  for (size_t i = 0; i < logits.size(); ++i) {
    scored_.Add(engine::Sigmoid(logits[i]), logits[i] > 0, labels[i],
                weights.empty() ? 1.0f : weights[i]);
  }
}

void BinaryMetrics::AddProbabilities(std::span<const float> probabilities,
                                     std::span<const float> labels,
                                     std::span<const float> weights) {
  for (size_t i = 0; i < probabilities.size(); ++i) {
    scored_.Add(probabilities[i], probabilities[i] > 0.5f, labels[i],
                weights.empty() ? 1.0f : weights[i]);
  }
}

absl::Status BinaryMetrics::Merge(const Metrics& other) {
  MUSTER_ASSIGN_OR_RETURN(const BinaryMetrics* same, SameKind<BinaryMetrics>(other));
  scored_.Merge(same->scored_);
  loss_.Merge(same->loss_);
  groups_.insert(groups_.end(), same->groups_.begin(), same->groups_.end());
  return absl::OkStatus();
}

State BinaryMetrics::GetState() const {
  State state = {.head = kHead};
  scored_.AppendTo(&state);
  loss_.AppendTo(&state.sums);
  state.groups = groups_;
  return state;
}

absl::Status BinaryMetrics::Merge(const State& state) {
  MUSTER_RETURN_IF_ERROR(
      CheckState(state, kHead, ScoredRows::kSums + LossMeans::kSums, /*lists=*/1));
  if (!state.groups.empty() && state.groups.size() != state.scored[0].size()) {
    return absl::InvalidArgumentError(StrCat("cannot merge metrics of ", state.scored[0].size(),
                                             " rows with ", state.groups.size(), " groups"));
  }
  groups_.insert(groups_.end(), state.groups.begin(), state.groups.end());
  SumsReader sums(state.sums);
  scored_.Merge(&sums, state.scored[0]);
  loss_.Merge(&sums);
  return absl::OkStatus();
}

std::vector<NamedValue> BinaryMetrics::Values() const {
  const double label_mean = scored_.label_mean();
  const ScoredRows::Areas areas = scored_.AreasUnderCurves();
  const ScoredRows::Decisions decided = scored_.Decided();
  std::vector<NamedValue> values = {
      {"accuracy", decided.accuracy},
      {"accuracy_baseline", std::max(label_mean, 1 - label_mean)},
      {"auc", areas.exact},
      {"auc_interpolated", areas.interpolated},
      {"auc_precision_recall", areas.precision_recall},
      {"average_loss", ComputeMean(loss_.sum(), scored_.weight())},
      {"label/mean", label_mean},
      {"precision", decided.precision},
      {"prediction/mean", scored_.prediction_mean()},
      {"recall", decided.recall},
  };
  AppendThresholds(scored_, spec_.thresholds, &values);
  AppendCalibration(scored_, spec_.calibration_buckets, &values);
  if (!spec_.group.empty()) {
    const ScoredRows::Grouped grouped = scored_.GroupedAuc(groups_);
    values.emplace_back("gauc", grouped.auc);
    values.emplace_back("gauc/groups", grouped.groups);
    values.emplace_back("gauc/groups_left_out", grouped.left_out);
  }
  values.emplace_back("loss", loss_.loss());
  return values;
}

const HeadMetrics kBinaryMetrics = {
    .head = "binary",
    .takes_thresholds = true,
    .takes_calibration = true,
    .takes_group = true,
    .make = [](const engine::HeadSpec& head, const MetricsSpec& spec,
               const std::vector<std::string>& /*class_names*/) -> std::unique_ptr<Metrics> {
      return std::make_unique<BinaryMetrics>(spec, head);
    }};

}  // namespace muster::metrics
