#include "muster/metrics/metrics.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/metrics/head_metrics.h"

namespace muster::metrics {
namespace {

constexpr int kMaxBuckets = 10000;

constexpr const HeadMetrics* kHeads[] = {&kBinaryMetrics, &kMultiClassMetrics, &kMultiLabelMetrics,
                                         &kRegressionMetrics, &kInBatchSoftmaxMetrics};

// INVALID_ARGUMENT if the setting is `given` but does not apply to the head.
absl::Status CheckUse(std::string_view setting, bool given, const engine::HeadSpec& head,
                      bool HeadMetrics::*takes) {
  std::vector<std::string> takers;
  for (const HeadMetrics* const each : kHeads) {
    if (!(each->*takes)) continue;
    if (!given || each->head == head.kind) return absl::OkStatus();
    takers.emplace_back(each->head);
  }
  return absl::InvalidArgumentError(StrCat("metrics.", setting, ": a ", head.kind,
                                           " head has none; it is for ",
                                           absl::StrJoin(takers, " and ")));
}

}  // namespace

absl::Status Validate(const MetricsSpec& spec, const engine::HeadSpec& head) {
  MUSTER_RETURN_IF_ERROR(
      CheckUse("thresholds", !spec.thresholds.empty(), head, &HeadMetrics::takes_thresholds));
  for (const double threshold : spec.thresholds) {
    if (threshold > 0 && threshold < 1) continue;
    return absl::InvalidArgumentError(
        StrCat("metrics.thresholds: ", threshold, " is not between 0 and 1"));
  }
  MUSTER_RETURN_IF_ERROR(CheckUse("top_k", !spec.top_k.empty(), head, &HeadMetrics::takes_top_k));
  for (const int k : spec.top_k) {
    // other heads rank as many items as a batch has
    const bool has_classes = head.class_count() > 0;
    if (k >= 1 && (!has_classes || k <= head.classes)) continue;
    if (!has_classes) {
      return absl::InvalidArgumentError(StrCat("metrics.top_k: ", k, " is not 1 or more"));
    }
    return absl::InvalidArgumentError(
        StrCat("metrics.top_k: ", k, " is not 1 to the number of classes, ", head.classes));
  }
  MUSTER_RETURN_IF_ERROR(
      CheckUse("per_class", spec.per_class, head, &HeadMetrics::takes_per_class));
  MUSTER_RETURN_IF_ERROR(CheckUse("calibration_buckets", spec.calibration_buckets != 0, head,
                                  &HeadMetrics::takes_calibration));
  MUSTER_RETURN_IF_ERROR(CheckUse("group", !spec.group.empty(), head, &HeadMetrics::takes_group));
  if (spec.calibration_buckets < 0 || spec.calibration_buckets > kMaxBuckets) {
    return absl::InvalidArgumentError(StrCat(
        "metrics.calibration_buckets: ", spec.calibration_buckets, " is not 0 to ", kMaxBuckets));
  }
  return absl::OkStatus();
}

absl::Status CheckState(const State& state, const std::string& head, size_t sums, size_t lists) {
  if (state.head != head) {
    return absl::InvalidArgumentError(
        StrCat("cannot merge metrics of [", state.head, "] with those of [", head, "]"));
  }
  if (state.sums.size() != sums || state.scored.size() != lists) {
    return absl::InvalidArgumentError(StrCat("cannot merge metrics of ", state.sums.size(),
                                             " sums and ", state.scored.size(),
                                             " lists of rows with ", sums, " and ", lists));
  }
  for (const auto& rows : state.scored) {
    for (const ScoredRow& row : rows) {
      if (std::isnan(row.probability) || (row.probability >= 0 && row.probability <= 1)) continue;
      return absl::InvalidArgumentError(
          StrCat("cannot merge metrics with a probability of ", row.probability));
    }
  }
  return absl::OkStatus();
}

void AppendThresholds(const ScoredRows& scored, const std::vector<double>& thresholds,
                      std::vector<NamedValue>* values) {
  for (const double threshold : thresholds) {
    const ScoredRows::Decisions decided = scored.DecidedAt(static_cast<float>(threshold));
    const std::string suffix = absl::StrFormat("/positive_threshold_%g", threshold);
    values->emplace_back(StrCat("accuracy", suffix), decided.accuracy);
    values->emplace_back(StrCat("precision", suffix), decided.precision);
    values->emplace_back(StrCat("recall", suffix), decided.recall);
  }
}

void AppendCalibration(const ScoredRows& scored, int buckets, std::vector<NamedValue>* values) {
  if (buckets == 0) return;
  values->emplace_back("calibration", ComputeMean(scored.prediction_mean(), scored.label_mean()));
  int index = 0;
  const std::vector<ScoredRows::Bucket> counted = scored.Calibration(buckets);
  double error = 0, weight = 0;
  for (const ScoredRows::Bucket& bucket : counted) {
    error += std::abs(bucket.label_sum - bucket.prediction_sum);
    weight += bucket.weight;
  }
  values->emplace_back("calibration/error", ComputeMean(error, weight));
  for (const ScoredRows::Bucket& bucket : counted) {
    const std::string name = StrCat("calibration/bucket_", index++);
    values->emplace_back(StrCat(name, "/label_mean"), ComputeMean(bucket.label_sum, bucket.weight));
    values->emplace_back(StrCat(name, "/prediction_mean"),
                         ComputeMean(bucket.prediction_sum, bucket.weight));
    values->emplace_back(StrCat(name, "/weight"), bucket.weight);
  }
}

absl::StatusOr<std::unique_ptr<Metrics>> NewMetrics(const engine::HeadSpec& head,
                                                    const MetricsSpec& spec,
                                                    const std::vector<std::string>& class_names) {
  MUSTER_RETURN_IF_ERROR(engine::Validate(head));
  MUSTER_RETURN_IF_ERROR(Validate(spec, head));
  std::vector<std::string> names = class_names;
  for (int i = static_cast<int>(names.size()); i < head.classes; ++i) {
    names.push_back(StrCat("class", i));
  }
  for (const HeadMetrics* const each : kHeads) {
    if (each->head == head.kind) return each->make(head, spec, names);
  }
  return absl::UnimplementedError(StrCat("a ", head.kind, " head has no metrics"));
}

}  // namespace muster::metrics
