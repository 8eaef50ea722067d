// Metrics of a regression head. average_loss, label/mean and prediction/mean are tf.estimator's;
// mean_absolute_error, mean_squared_error and root_mean_squared_error are Keras's, of predictions
// against labels. Every number of a label counts as one, with its row's weight.
#include "muster/engine/heads/regression.h"

#include <cmath>

#include "muster/metrics/head_metrics.h"

namespace muster::metrics {
namespace {

class RegressionMetrics final : public Metrics {
 public:
  explicit RegressionMetrics(const engine::HeadSpec& head) : head_(head) {}

  void Add(std::span<const float> logits, std::span<const float> labels,
           std::span<const float> weights) override {
    const auto width = static_cast<size_t>(head_.label_dimension);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double weight = weights.empty() ? 1.0 : weights[i / width];
      const double prediction = inverse_link_(logits[i]);
      const double error = prediction - labels[i];
      sums_.weight += weight;
      sums_.label += weight * labels[i];
      sums_.prediction += weight * prediction;
      sums_.absolute += weight * std::fabs(error);
      sums_.squared += weight * error * error;
    }
  }

  void AddLoss(double weighted_sum, int64_t rows) override { loss_.Add(weighted_sum, rows); }

  absl::Status Merge(const Metrics& other) override {
    MUSTER_ASSIGN_OR_RETURN(const RegressionMetrics* same, SameKind<RegressionMetrics>(other));
    if (same->head_ != head_)
      return absl::InvalidArgumentError("cannot merge metrics of another head");
    loss_.Merge(same->loss_);
    sums_.weight += same->sums_.weight;
    sums_.label += same->sums_.label;
    sums_.prediction += same->sums_.prediction;
    sums_.absolute += same->sums_.absolute;
    sums_.squared += same->sums_.squared;
    return absl::OkStatus();
  }

  State GetState() const override {
    State state = {
        .head = Head(),
        .sums = {sums_.weight, sums_.label, sums_.prediction, sums_.absolute, sums_.squared}};
    loss_.AppendTo(&state.sums);
    return state;
  }

  absl::Status Merge(const State& state) override {
    MUSTER_RETURN_IF_ERROR(CheckState(state, Head(), kSums + LossMeans::kSums, /*lists=*/0));
    SumsReader sums(state.sums);
    sums.AddTo({&sums_.weight, &sums_.label, &sums_.prediction, &sums_.absolute, &sums_.squared});
    loss_.Merge(&sums);
    return absl::OkStatus();
  }

  std::vector<NamedValue> Values() const override {
    const double weight = sums_.weight;
    const double squared = ComputeMean(sums_.squared, weight);
    return {
        {"average_loss", ComputeMean(loss_.sum() * head_.label_dimension, weight)},
        {"label/mean", ComputeMean(sums_.label, weight)},
        {"mean_absolute_error", ComputeMean(sums_.absolute, weight)},
        {"mean_squared_error", squared},
        {"prediction/mean", ComputeMean(sums_.prediction, weight)},
        {"root_mean_squared_error", std::sqrt(squared)},
        {"loss", loss_.loss()},
    };
  }

 private:
  static constexpr size_t kSums = 5;

  std::string Head() const {
    return StrCat("regression of ", head_.label_dimension, ", ", head_.loss);
  }

  struct Sums {
    double weight = 0, label = 0, prediction = 0, absolute = 0, squared = 0;
  };

  const engine::HeadSpec head_;
  float (*const inverse_link_)(float) = engine::GetInverseLink(head_.loss);
  Sums sums_;
  LossMeans loss_{head_};
};

}  // namespace

const HeadMetrics kRegressionMetrics = {
    .head = "regression",
    .make = [](const engine::HeadSpec& head, const MetricsSpec& /*spec*/,
               const std::vector<std::string>& /*class_names*/) -> std::unique_ptr<Metrics> {
      return std::make_unique<RegressionMetrics>(head);
    }};

}  // namespace muster::metrics
