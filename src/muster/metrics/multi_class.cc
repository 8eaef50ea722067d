// Metrics of a classifier of one class among many. accuracy and average_loss are tf.estimator's.
// accuracy/top_K is Keras's SparseTopKCategoricalAccuracy (tf.math.in_top_k): a class that ties
// with the Kth counts as found, a row with a logit that is not finite does not. accuracy/CLASS is
// the share of the rows of that class that are right; mean_per_class_accuracy is the mean of these
// shares (as in tf.compat.v1.metrics).
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/engine/predictions.h"
#include "muster/metrics/head_metrics.h"

namespace muster::metrics {
namespace {

class MultiClassMetrics final : public Metrics {
 public:
  MultiClassMetrics(const engine::HeadSpec& head, MetricsSpec spec,
                    std::vector<std::string> class_names)
      : spec_(std::move(spec)),
        class_names_(std::move(class_names)),
        weight_of_class_(class_names_.size()),
        right_of_class_(class_names_.size()),
        right_in_top_(spec_.top_k.size()),
        loss_(head) {}

  void Add(std::span<const float> logits, std::span<const float> labels,
           std::span<const float> weights) override {
    const size_t width = class_names_.size();
    for (size_t row = 0; row < labels.size(); ++row) {
      const std::span<const float> of_row = logits.subspan(row * width, width);
      const double weight = weights.empty() ? 1.0 : weights[row];
      const auto label = static_cast<size_t>(labels[row]);
      weight_of_class_[label] += weight;
      if (engine::LargestLogit(of_row) == static_cast<int>(label)) right_of_class_[label] += weight;
      if (!spec_.top_k.empty()) AddToTop(of_row, label, weight);
    }
  }

  void AddLoss(double weighted_sum, int64_t rows) override { loss_.Add(weighted_sum, rows); }

  absl::Status Merge(const Metrics& other) override {
    MUSTER_ASSIGN_OR_RETURN(const MultiClassMetrics* same, SameKind<MultiClassMetrics>(other));
    if (same->class_names_ != class_names_ || same->spec_ != spec_) {
      return absl::InvalidArgumentError("cannot merge metrics of other classes or settings");
    }
    loss_.Merge(same->loss_);
    for (size_t i = 0; i < class_names_.size(); ++i) {
      weight_of_class_[i] += same->weight_of_class_[i];
      right_of_class_[i] += same->right_of_class_[i];
    }
    for (size_t i = 0; i < right_in_top_.size(); ++i) right_in_top_[i] += same->right_in_top_[i];
    return absl::OkStatus();
  }

  State GetState() const override {
    State state = {.head = Head(), .sums = weight_of_class_};
    const auto append = [&](const std::vector<double>& sums) {
      state.sums.insert(state.sums.end(), sums.begin(), sums.end());
    };
    append(right_of_class_);
    append(right_in_top_);
    loss_.AppendTo(&state.sums);
    return state;
  }

  absl::Status Merge(const State& state) override {
    const size_t sums = 2 * class_names_.size() + right_in_top_.size() + LossMeans::kSums;
    MUSTER_RETURN_IF_ERROR(CheckState(state, Head(), sums, /*lists=*/0));
    SumsReader reader(state.sums);
    reader.AddTo(&weight_of_class_);
    reader.AddTo(&right_of_class_);
    reader.AddTo(&right_in_top_);
    loss_.Merge(&reader);
    return absl::OkStatus();
  }

  std::vector<NamedValue> Values() const override {
    const double weight = Sum(weight_of_class_);
    std::vector<NamedValue> values = {{"accuracy", ComputeMean(Sum(right_of_class_), weight)},
                                      {"average_loss", ComputeMean(loss_.sum(), weight)}};
    for (size_t i = 0; i < spec_.top_k.size(); ++i) {
      values.emplace_back(StrCat("accuracy/top_", spec_.top_k[i]),
                          ComputeMean(right_in_top_[i], weight));
    }
    if (spec_.per_class) AppendClasses(&values);
    values.emplace_back("loss", loss_.loss());
    return values;
  }

 private:
  std::string Head() const {
    return StrCat("multi_class of ", class_names_.size(), ", top ",
                  absl::StrJoin(spec_.top_k, ","));
  }

  static double Sum(const std::vector<double>& of) {
    return std::accumulate(of.begin(), of.end(), 0.0);
  }

  void AddToTop(std::span<const float> logits, size_t label, double weight) {
    size_t above = 0;
    for (const float logit : logits) {
      if (!std::isfinite(logit)) return;
      above += logit > logits[label] ? 1 : 0;
    }
    for (size_t i = 0; i < spec_.top_k.size(); ++i) {
      if (above < static_cast<size_t>(spec_.top_k[i])) right_in_top_[i] += weight;
    }
  }

  void AppendClasses(std::vector<NamedValue>* values) const {
    double sum = 0, classes = 0;
    for (size_t i = 0; i < class_names_.size(); ++i) {
      const double accuracy = ComputeMean(right_of_class_[i], weight_of_class_[i]);
      values->emplace_back(StrCat("accuracy/", class_names_[i]), accuracy);
      if (weight_of_class_[i] <= 0) continue;
      sum += accuracy;
      ++classes;
    }
    values->emplace_back("mean_per_class_accuracy", ComputeMean(sum, classes));
  }

  const MetricsSpec spec_;
  const std::vector<std::string> class_names_;
  std::vector<double> weight_of_class_, right_of_class_;
  std::vector<double> right_in_top_;  // by index of spec_.top_k
  LossMeans loss_;
};

}  // namespace

const HeadMetrics kMultiClassMetrics = {
    .head = "multi_class",
    .takes_top_k = true,
    .takes_per_class = true,
    .make = [](const engine::HeadSpec& head, const MetricsSpec& spec,
               const std::vector<std::string>& class_names) -> std::unique_ptr<Metrics> {
      return std::make_unique<MultiClassMetrics>(head, spec, class_names);
    }};

}  // namespace muster::metrics
