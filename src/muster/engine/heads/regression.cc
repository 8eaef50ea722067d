// head: regression. One logit per number; a label is `label_dimension` numbers.
//
// The loss of a row is the mean over label dimensions of
//   mean_squared  (x - z)^2
//   poisson       exp(x) - x z, and for z > 1 Stirling's z log z - z + log(2 pi z) / 2
//                 (tf.nn.log_poisson_loss with compute_full_loss, PoissonRegressionHead); the
//                 prediction is exp(x)
//   log_normal    log z + log(2 pi s) / 2 + (log z - x + s / 2)^2 / (2 s), s = log 2: minus the
//                 log likelihood of LogNormal(x - s / 2, sqrt(s)), whose mean is the prediction
//                 exp(x) (tfp.glm.LogNormal; tf.estimator has no such head)
//   logistic      the binary head's loss, for labels between 0 and 1 (LogisticRegressionHead); the
//                 prediction is the sigmoid of x
// Predictions: predictions n: the logits; or, beside logits n, exp(logits) for poisson and
// log_normal, the sigmoids for logistic.
#include "muster/engine/heads/regression.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "muster/base/nearest.h"
#include "muster/engine/heads/head_kind.h"
#include "muster/engine/heads/head_of_spec.h"

namespace muster::engine {
namespace {

LossAndSlope SquaredError(float x, float label) {
  return {(x - label) * (x - label), 2 * (x - label)};
}

LossAndSlope PoissonLoss(float x, float label) {
  const float mean = std::exp(x);
  float loss = mean - x * label;
  if (label > 1) {
    loss +=
        label * std::log(label) - label + 0.5f * std::log(2 * std::numbers::pi_v<float> * label);
  }
  return {loss, mean - label};
}

LossAndSlope LogNormalLoss(float x, float label) {
  constexpr float kVariance = std::numbers::ln2_v<float>;
  const float log_label = std::log(label);
  const float distance = log_label - x + kVariance / 2;
  const float constant = 0.5f * std::log(2 * std::numbers::pi_v<float> * kVariance);
  return {log_label + constant + distance * distance / (2 * kVariance), -distance / kVariance};
}

float Identity(float logit) { return logit; }
float Exp(float logit) { return std::exp(logit); }

struct RegressionLoss {
  std::string_view name;
  std::unique_ptr<Head> (*make)(const HeadSpec& spec);
  float (*inverse_link)(float logit);
  std::string_view inverse_link_op;  // the operation in a TensorFlow graph
  // Describes what is wrong with a finite label; "" if nothing is.
  std::string_view (*fault)(float label);
};

constexpr RegressionLoss kLosses[] = {
    {.name = "mean_squared",
     .make = NewMeanHead<SquaredError>,
     .inverse_link = Identity,
     .inverse_link_op = "Identity",
     .fault = [](float) { return std::string_view(); }},
    {.name = "poisson",
     .make = NewMeanHead<PoissonLoss>,
     .inverse_link = Exp,
     .inverse_link_op = "Exp",
     .fault =
         [](float label) {
           return std::string_view(label < 0 ? "is negative, and the poisson loss is of counts"
                                             : "");
         }},
    {.name = "log_normal",
     .make = NewMeanHead<LogNormalLoss>,
     .inverse_link = Exp,
     .inverse_link_op = "Exp",
     .fault =
         [](float label) {
           return std::string_view(label <= 0 ? "is not above 0, as the log_normal loss needs"
                                              : "");
         }},
    {.name = "logistic",
     .make = NewMeanHead<SigmoidCrossEntropy>,
     .inverse_link = Sigmoid,
     .inverse_link_op = "Sigmoid",
     .fault =
         [](float label) {
           return std::string_view(
               label < 0 || label > 1 ? "is not between 0 and 1, as the logistic loss needs" : "");
         }},
};

// Returns null if there is no loss of that name.
const RegressionLoss* FindLoss(std::string_view name) {
  const auto* const found = std::ranges::find(kLosses, name, &RegressionLoss::name);
  return found == std::end(kLosses) ? nullptr : found;
}

// Returns "unknown loss 'poison' (did you mean 'poisson'?)".
std::string UnknownLoss(const std::string& name) {
  std::vector<std::string> known;
  for (const RegressionLoss& each : kLosses) known.emplace_back(each.name);
  return StrCat("unknown loss '", name, "'", DidYouMean(name, known));
}

void ParseLoss(const formats::YamlReader& node, const std::string& name, HeadSpec* spec) {
  if (FindLoss(name) != nullptr) {
    spec->loss = name;
  } else if (node.ok()) {
    node.Fail(UnknownLoss(name));
  }
}

class RegressionHead final : public HeadKind {
 public:
  std::string_view name() const override { return "regression"; }

  void Parse(const HeadOptions& options, HeadSpec* spec) const override {
    const formats::YamlReader& node = options.node;
    if (!options.given) return;
    if (node.IsScalar()) return ParseLoss(node, node.AsString(), spec);
    node.CheckKeys({"loss", "label_dimension"});
    if (node.Has("loss")) ParseLoss(node, node.String("loss"), spec);
    spec->label_dimension = static_cast<int>(node.Int("label_dimension", 1, 1, kMaxHeadSize));
  }
  void Print(const HeadSpec& spec, YAML::Emitter& out) const override {
    out << YAML::Key << "loss" << YAML::Value << YAML::DoubleQuoted << spec.loss;
    out << YAML::Key << "label_dimension" << YAML::Value << spec.label_dimension;
  }
  absl::Status Validate(const HeadSpec& spec) const override {
    if (FindLoss(spec.loss) == nullptr) {
      return absl::InvalidArgumentError(StrCat("head regression: ", UnknownLoss(spec.loss)));
    }
    return CheckHeadSize(spec, "label_dimension", spec.label_dimension, 1, "");
  }

  int logits_dimension(const HeadSpec& spec) const override { return spec.label_dimension; }
  int class_count(const HeadSpec& /*spec*/) const override { return 0; }
  features::LabelSpec::Form GetLabelForm(const HeadSpec& spec, const features::LabelSpec& label,
                                         bool is_list) const override {
    return spec.label_dimension > 1 || is_list ? features::LabelSpec::Form::kVector : label.form;
  }
  std::string FindFault(const HeadSpec& spec, float label) const override {
    if (!std::isfinite(label)) return "is not finite";
    return std::string(FindLoss(spec.loss)->fault(label));
  }

  std::unique_ptr<Head> NewHead(const HeadSpec& spec) const override {
    return FindLoss(spec.loss)->make(spec);
  }
  // The loss of a row is then the sum over its label dimensions, not their mean.
  double GetSumScale(const HeadSpec& spec) const override { return spec.label_dimension; }

  void Predict(const HeadSpec& spec, std::span<const float> logits,
               const std::vector<std::string>& /*class_names*/,
               PredictionFiller* filler) const override {
    const int width = spec.label_dimension;
    const auto inverse_link = FindLoss(spec.loss)->inverse_link;
    std::ranges::transform(logits, filler->Floats("predictions", width).begin(), inverse_link);
    if (inverse_link == Identity) return;
    std::ranges::copy(logits, filler->Floats("logits", width).begin());
  }

  HeadOutputs AddNodes(const HeadSpec& spec, HeadNodes* nodes) const override {
    using formats::DataType;
    const RegressionLoss& loss = *FindLoss(spec.loss);
    const std::string& logits = nodes->logits();
    const std::string predictions = nodes->Floats("predictions", loss.inverse_link_op, {logits});
    const formats::GraphShape shape = {-1, spec.label_dimension};
    HeadOutputs out;
    out.predict = {{"predictions", predictions, DataType::kFloat, shape}};
    if (loss.inverse_link != Identity) {
      out.predict.push_back({"logits", logits, DataType::kFloat, shape});
    }
    out.regress = {{"outputs", predictions, DataType::kFloat, shape}};
    return out;
  }
};

}  // namespace

float (*GetInverseLink(std::string_view loss))(float logit) { return FindLoss(loss)->inverse_link; }

const HeadKind& GetRegressionHead() {
  static const RegressionHead kHead;
  return kHead;
}

}  // namespace muster::engine
