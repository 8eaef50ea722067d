#include "muster/train/loop/hooks/run_summary.h"

#include <algorithm>
#include <utility>

#include "muster/metrics/metrics.h"
#include "muster/model/layer_graph.h"
#include "muster/model/spec/settings.h"

namespace muster::train {
namespace {

formats::HparamInfo::Type GetType(const formats::HparamValue& value) {
  using Type = formats::HparamInfo::Type;
  if (std::holds_alternative<bool>(value)) return Type::kBool;
  return std::holds_alternative<double>(value) ? Type::kNumber : Type::kString;
}

// False for a model of a user's function, whose spec describes only the data.
bool IsFromFile(const model::ModelSpec& spec) { return !spec.type().empty(); }

// The settings that people compare first. TensorBoard shows many runs with the experiment of one
// run: therefore each experiment names these settings, even if its model does not have them.
constexpr std::string_view kKeySettings[] = {"dnn/hidden_units",
                                             "dnn/optimizer/learning_rate",
                                             "linear/optimizer/learning_rate",
                                             "train/batch_size",
                                             "train/epochs",
                                             "dnn/dropout",
                                             "dnn/optimizer",
                                             "linear/optimizer",
                                             "type"};
constexpr int kShownSettings = 5;

absl::StatusOr<formats::HparamExperiment> Experiment(const model::Model& model,
                                                     const std::vector<formats::Hparam>& settings,
                                                     double seconds) {
  using Type = formats::HparamInfo::Type;
  formats::HparamExperiment experiment;
  experiment.created_seconds = seconds;
  for (const auto& [name, value] : settings) experiment.settings.push_back({name, GetType(value)});
  int shown = 0;
  for (const std::string_view key : kKeySettings) {
    const auto found = std::find_if(experiment.settings.begin(), experiment.settings.end(),
                                    [key](const auto& info) { return info.name == key; });
    if (found == experiment.settings.end()) {
      const bool is_number =
          key.ends_with("_rate") || key.ends_with("dropout") || key.starts_with("train/");
      experiment.settings.push_back({std::string(key), is_number ? Type::kNumber : Type::kString});
    } else {
      found->differs = shown++ < kShownSettings;  // TensorBoard then shows the setting
    }
  }
  experiment.metrics.push_back({"", "loss", "loss"});
  MUSTER_ASSIGN_OR_RETURN(const auto metrics, model::NewMetrics(model, model.spec.metrics));
  for (const auto& [name, value] : metrics->Values()) {
    experiment.metrics.push_back({"eval", name, StrCat("eval/", name)});
  }
  return experiment;
}

class RunSummary : public Hook {
 public:
  explicit RunSummary(std::function<std::vector<formats::Hparam>(const model::ModelSpec&)> settings)
      : settings_(std::move(settings)) {}

  absl::Status AfterCreateSession(Session& session) override {
    if (std::exchange(written_, true)) return absl::OkStatus();  // this is a call after a recovery
    const double now = session.clock.WallSeconds();
    const std::vector<formats::Hparam> settings = settings_(session.model.spec);
    formats::Summary summary;
    if (IsFromFile(session.model.spec)) {
      summary.AddText("spec", formats::CodeBlock(model::PrintModelSpec(session.model.spec)));
    }
    MUSTER_ASSIGN_OR_RETURN(const formats::HparamExperiment experiment,
                            Experiment(session.model, settings, now));
    AddHparamExperiment(experiment, &summary);
    AddHparamSessionStart(settings, now, &summary);
    MUSTER_RETURN_IF_ERROR(session.events->WriteSummary(session.step, summary));
    MUSTER_ASSIGN_OR_RETURN(const std::string graph, model::LayerGraph(session.model));
    MUSTER_RETURN_IF_ERROR(session.events->WriteGraph(graph));
    return session.events->Flush();
  }

  absl::Status End(Session& session) override {
    if (session.ending.interrupted) return absl::OkStatus();
    formats::Summary summary;
    AddHparamSessionEnd(formats::HparamStatus::kSuccess, session.clock.WallSeconds(), &summary);
    return session.events->WriteSummary(session.step, summary);
  }

 private:
  const std::function<std::vector<formats::Hparam>(const model::ModelSpec&)> settings_;
  bool written_ = false;
};

}  // namespace

std::vector<formats::Hparam> RunSettings(const model::ModelSpec& model, const TrainSpec& spec,
                                         const RunConfig& config) {
  std::vector<formats::Hparam> settings;
  if (IsFromFile(model)) settings = model::Settings(model);
  const auto set = [&](const std::string& name, formats::HparamValue value) {
    const auto found = std::find_if(settings.begin(), settings.end(),
                                    [&](const auto& hparam) { return hparam.name == name; });
    if (found != settings.end()) {
      found->value = std::move(value);
    } else {
      settings.push_back({name, std::move(value)});
    }
  };
  if (!spec.input_fn) {
    const auto& reader = spec.input.reader;
    set("train/batch_size", static_cast<double>(reader.batch_size));
    set("train/epochs", static_cast<double>(reader.epochs));
    set("train/shuffle", reader.shuffle);
  }
  set("train/seed", static_cast<double>(config.seed));
  set("train/threads", static_cast<double>(config.threads));
  if (spec.max_steps) set("train/max_steps", static_cast<double>(*spec.max_steps));
  if (spec.steps) set("train/steps", static_cast<double>(*spec.steps));
  return settings;
}

std::unique_ptr<Hook> NewRunSummary(const TrainSpec& spec, const RunConfig& config) {
  return std::make_unique<RunSummary>(
      [&spec, &config](const model::ModelSpec& model) { return RunSettings(model, spec, config); });
}

}  // namespace muster::train
