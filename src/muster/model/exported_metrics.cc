#include <limits>
#include <utility>

#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/model/exported_model.h"

namespace muster::model {
namespace {

using engine::tensorflow::KerasMetric;
using engine::tensorflow::TensorFlowEngine;

class ExportedMetrics final : public metrics::Metrics {
 public:
  explicit ExportedMetrics(TensorFlowEngine& engine) : engine_(engine) {
    for (const KerasMetric& metric : engine_.model().metrics) {
      for (const KerasMetric::State& state : metric.states) {
        states_.emplace_back(static_cast<size_t>(formats::ElementCount(state.shape).value_or(0)));
      }
    }
    values_.assign(engine_.model().metrics.size(), std::numeric_limits<double>::quiet_NaN());
  }

  void Add(const engine::Forward& forward, const features::FeatureBatch& batch) override {
    for (size_t i = 0; i < states_.size() && i < forward.metric_states.size(); ++i) {
      const std::vector<float>& increments = forward.metric_states[i];
      for (size_t k = 0; k < states_[i].size() && k < increments.size(); ++k) {
        states_[i][k] += double{increments[k]};
      }
    }
    AddLoss(forward.loss_sum, batch.rows);
  }
  // An exported model's results come as metric states, not as logits and labels.
  void Add(std::span<const float>, std::span<const float>, std::span<const float>) override {}
  void AddLoss(double weighted_sum, int64_t rows) override {
    loss_sum_ += weighted_sum;
    rows_ += static_cast<double>(rows);
  }

  absl::Status Merge(const Metrics& other) override { return Merge(other.GetState()); }

  metrics::State GetState() const override {
    metrics::State state = {.head = Head(), .sums = {loss_sum_, rows_}};
    for (const auto& numbers : states_) {
      state.sums.insert(state.sums.end(), numbers.begin(), numbers.end());
    }
    return state;
  }

  absl::Status Merge(const metrics::State& state) override {
    size_t wanted = 2;
    for (const auto& numbers : states_) wanted += numbers.size();
    if (state.head != Head() || state.sums.size() != wanted || !state.scored.empty()) {
      return absl::InvalidArgumentError(
          StrCat("cannot merge metrics of [", state.head, "] with those of [", Head(), "]"));
    }
    loss_sum_ += state.sums[0];
    rows_ += state.sums[1];
    size_t next = 2;
    for (auto& numbers : states_) {
      for (double& number : numbers) number += state.sums[next++];
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    std::vector<std::vector<float>> states;
    for (const auto& numbers : states_) states.emplace_back(numbers.begin(), numbers.end());
    MUSTER_ASSIGN_OR_RETURN(values_, engine_.MetricValues(states));
    return absl::OkStatus();
  }

  std::vector<metrics::NamedValue> Values() const override {
    std::vector<metrics::NamedValue> values;
    for (size_t i = 0; i < values_.size(); ++i) {
      values.emplace_back(engine_.model().metrics[i].name, values_[i]);
    }
    values.emplace_back("loss",
                        rows_ > 0 ? loss_sum_ / rows_ : std::numeric_limits<double>::quiet_NaN());
    return values;
  }

 private:
  std::string Head() const {
    std::string head = StrCat("exported ", engine_.model().model_name);
    for (const KerasMetric& metric : engine_.model().metrics) head += StrCat(" ", metric.name);
    return head;
  }

  TensorFlowEngine& engine_;
  std::vector<std::vector<double>> states_;
  std::vector<double> values_;
  double loss_sum_ = 0, rows_ = 0;
};

}  // namespace

std::unique_ptr<metrics::Metrics> NewExportedMetrics(const Model& model) {
  return std::make_unique<ExportedMetrics>(dynamic_cast<TensorFlowEngine&>(*model.engine));
}

}  // namespace muster::model
