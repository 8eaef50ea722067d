#include "muster/train/loop/hooks/summary_saver.h"

#include <cmath>
#include <set>
#include <string>

#include "muster/train/loop/hooks/histogram.h"
#include "muster/train/loop/mean.h"
#include "muster/train/loop/training_metrics.h"

namespace muster::train {
namespace {

constexpr int64_t kTableElements = int64_t{1} << 16;
constexpr std::string_view kLinearFolder = "linear/linear_model/";
constexpr std::string_view kLinearBias = "linear/linear_model/bias_weights";

MatrixView Look(const engine::Activations& of) { return {of.values, of.rows, of.width, of.ld}; }

MatrixView Look(const engine::VariableSpec& spec, const engine::VariableView& view) {
  const MatrixView all{view.data, view.rows, view.cols, view.cols};
  return spec.kind == engine::VariableKind::kTable ? all.Sample(kTableElements) : all;
}

void AddHistogram(const std::string& tag, const MatrixView& matrix, formats::Summary* summary) {
  const formats::Histogram histogram = MakeHistogram(matrix);
  if (histogram.count > 0) summary->AddHistogram(tag, histogram);
}

// "dnn" of "dnn/logits/kernel".
std::string GetPart(const std::string& name) { return name.substr(0, name.find('/')); }

void AddLearningRates(const Session& session, formats::Summary* summary) {
  if (session.model.applies) return;  // the optimizer's function computes the rate itself
  std::set<int> seen;
  for (const engine::VariableSpec& spec : session.variables.specs()) {
    if (!seen.insert(spec.group).second) continue;
    const auto& optimizer = session.model.optimizer_specs[static_cast<size_t>(spec.group)];
    const float rate = optim::RateAt(optimizer, session.step - 1);
    // If the rate is a function, it is unknown after a step that was not done.
    if (!std::isnan(rate)) summary->AddScalar(StrCat(GetPart(spec.name), "/learning_rate"), rate);
  }
}

void AddZeroActivations(const Session& session, formats::Summary* summary) {
  for (const engine::Activations& layer : session.model.engine->activations()) {
    summary->AddScalar(StrCat(layer.name, "/fraction_of_zero_values"),
                       static_cast<float>(FractionOfZeros(Look(layer))));
  }
}

void AddBias(const Session& session, formats::Summary* summary) {
  const auto specs = session.variables.specs();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name != kLinearBias || specs[i].elements() != 1) continue;
    summary->AddScalar("bias", session.variables.views()[i].data[0]);
  }
}

void AddWeights(const Session& session, formats::Summary* summary) {
  const auto specs = session.variables.specs();
  double zeros = 0, linear_weights = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    // Rows of tables that grow, or that parameter servers keep, are not in `variables`.
    if (specs[i].growth || session.variables.views()[i].data == nullptr) continue;
    const MatrixView matrix = Look(specs[i], session.variables.views()[i]);
    AddHistogram(specs[i].name, matrix, summary);
    if (!specs[i].name.starts_with(kLinearFolder) || specs[i].name == kLinearBias) continue;
    const auto elements = static_cast<double>(specs[i].elements());
    zeros += FractionOfZeros(matrix) * elements;
    linear_weights += elements;
  }
  if (linear_weights > 0) {
    summary->AddScalar("fraction_of_zero_weights", static_cast<float>(zeros / linear_weights));
  }
}

class SummarySaver : public Hook {
 public:
  explicit SummarySaver(const SummarySaverOptions& options) : options_(options) {}

  absl::Status AfterCreateSession(Session& session) override {
    step_ = histogram_step_ = session.step;
    if (options_.histogram_steps <= 0) return absl::OkStatus();
    formats::Summary summary;
    AddWeights(session, &summary);
    return Write(session, summary);
  }

  absl::Status AfterRun(Session& session, const StepValues& values) override {
    loss_.Add(values.loss, values.rows);
    const bool scalars = session.Reached(options_.steps);
    const bool histograms =
        options_.histogram_steps > 0 && session.Reached(options_.histogram_steps);
    return scalars || histograms ? Add(session, scalars, histograms) : absl::OkStatus();
  }

  absl::Status End(Session& session) override {
    return Add(session, true, options_.histogram_steps > 0);
  }

 private:
  // Writes what was not yet written for this step.
  absl::Status Add(Session& session, bool scalars, bool histograms) {
    formats::Summary summary;
    if (scalars && session.step != step_) {
      step_ = session.step;
      summary.AddScalar("loss", static_cast<float>(loss_.value()));
      loss_ = Mean();
      MUSTER_ASSIGN_OR_RETURN(const auto metrics, session.metrics->Values());
      for (const auto& [name, value] : metrics) {
        summary.AddScalar(name, static_cast<float>(value));
      }
      AddLearningRates(session, &summary);
      AddZeroActivations(session, &summary);
      AddBias(session, &summary);
    }
    if (histograms && session.step != histogram_step_) {
      histogram_step_ = session.step;
      for (const engine::Activations& layer : session.model.engine->activations()) {
        AddHistogram(StrCat(layer.name, "/activation"), Look(layer), &summary);
      }
      AddWeights(session, &summary);
    }
    return summary.empty() ? absl::OkStatus() : Write(session, summary);
  }

  // Flushes, so that an open TensorBoard page follows the training.
  static absl::Status Write(Session& session, const formats::Summary& summary) {
    MUSTER_RETURN_IF_ERROR(session.events->WriteSummary(session.step, summary));
    return session.events->Flush();
  }

  const SummarySaverOptions options_;
  int64_t step_ = 0;
  int64_t histogram_step_ = 0;
  Mean loss_;
};

}  // namespace

std::unique_ptr<Hook> NewSummarySaver(const SummarySaverOptions& options) {
  if (options.steps <= 0) return std::make_unique<Hook>();
  return std::make_unique<SummarySaver>(options);
}

}  // namespace muster::train
