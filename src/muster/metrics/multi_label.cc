// Metrics of a classifier of any number of classes at once. As in tf.estimator, each (row, class)
// counts as one in the areas under curves and in the metrics at thresholds; for each class there
// are probability_mean/CLASS, auc/CLASS and auc_precision_recall/CLASS. auc is exact; TensorFlow's
// value is auc_interpolated.
#include <utility>

#include "muster/engine/predictions.h"
#include "muster/metrics/head_metrics.h"

namespace muster::metrics {
namespace {

class MultiLabelMetrics final : public Metrics {
 public:
  MultiLabelMetrics(const engine::HeadSpec& head, MetricsSpec spec,
                    std::vector<std::string> class_names)
      : spec_(std::move(spec)),
        class_names_(std::move(class_names)),
        classes_(class_names_.size()),
        loss_(head) {}

  void Add(std::span<const float> logits, std::span<const float> labels,
           std::span<const float> weights) override {
    const size_t width = classes_.size();
    for (size_t i = 0; i < logits.size(); ++i) {
      classes_[i % width].Add(engine::Sigmoid(logits[i]), logits[i] > 0, labels[i],
                              weights.empty() ? 1.0f : weights[i / width]);
    }
  }

  void AddLoss(double weighted_sum, int64_t rows) override { loss_.Add(weighted_sum, rows); }

  absl::Status Merge(const Metrics& other) override {
    MUSTER_ASSIGN_OR_RETURN(const MultiLabelMetrics* same, SameKind<MultiLabelMetrics>(other));
    if (same->class_names_ != class_names_ || same->spec_ != spec_) {
      return absl::InvalidArgumentError("cannot merge metrics of other classes or settings");
    }
    loss_.Merge(same->loss_);
    for (size_t i = 0; i < classes_.size(); ++i) classes_[i].Merge(same->classes_[i]);
    return absl::OkStatus();
  }

  State GetState() const override {
    State state = {.head = Head()};
    for (const ScoredRows& one : classes_) one.AppendTo(&state);
    loss_.AppendTo(&state.sums);
    return state;
  }

  absl::Status Merge(const State& state) override {
    const size_t sums = classes_.size() * ScoredRows::kSums + LossMeans::kSums;
    MUSTER_RETURN_IF_ERROR(CheckState(state, Head(), sums, classes_.size()));
    SumsReader reader(state.sums);
    for (size_t i = 0; i < classes_.size(); ++i) classes_[i].Merge(&reader, state.scored[i]);
    loss_.Merge(&reader);
    return absl::OkStatus();
  }

  std::vector<NamedValue> Values() const override {
    ScoredRows all;
    for (const ScoredRows& one : classes_) all.Merge(one);
    const ScoredRows::Areas areas = all.AreasUnderCurves();
    std::vector<NamedValue> values = {
        {"auc", areas.exact},
        {"auc_interpolated", areas.interpolated},
        {"auc_precision_recall", areas.precision_recall},
        {"average_loss", ComputeMean(loss_.sum(), classes_[0].weight())}};
    AppendThresholds(all, spec_.thresholds, &values);
    for (size_t i = 0; spec_.per_class && i < classes_.size(); ++i) {
      const ScoredRows::Areas own = classes_[i].AreasUnderCurves();
      const std::string& name = class_names_[i];
      values.emplace_back(StrCat("probability_mean/", name), classes_[i].prediction_mean());
      values.emplace_back(StrCat("auc/", name), own.exact);
      values.emplace_back(StrCat("auc_interpolated/", name), own.interpolated);
      values.emplace_back(StrCat("auc_precision_recall/", name), own.precision_recall);
    }
    values.emplace_back("loss", loss_.loss());
    return values;
  }

 private:
  std::string Head() const { return StrCat("multi_label of ", classes_.size()); }

  const MetricsSpec spec_;
  const std::vector<std::string> class_names_;
  std::vector<ScoredRows> classes_;
  LossMeans loss_;
};

}  // namespace

const HeadMetrics kMultiLabelMetrics = {
    .head = "multi_label",
    .takes_thresholds = true,
    .takes_per_class = true,
    .make = [](const engine::HeadSpec& head, const MetricsSpec& spec,
               const std::vector<std::string>& class_names) -> std::unique_ptr<Metrics> {
      return std::make_unique<MultiLabelMetrics>(head, spec, class_names);
    }};

}  // namespace muster::metrics
