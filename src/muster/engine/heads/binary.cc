// head: binary. One logit; a label is 0 or 1.
//
// The loss of a row: max(x, 0) - x z + log(1 + exp(-|x|)) (sigmoid_cross_entropy_with_logits).
// Predictions: logits 1, logistic 1, probabilities 2, class_ids 1, classes 1, all_class_ids 2,
// all_classes 2; class 1 when the logit is above 0.
#include <algorithm>

#include "muster/engine/heads/head_kind.h"
#include "muster/engine/heads/head_of_spec.h"

namespace muster::engine {
namespace {

class BinaryHead final : public HeadKind {
 public:
  std::string_view name() const override { return "binary"; }

  void Parse(const HeadOptions& options, HeadSpec* /*spec*/) const override {
    if (options.given) options.node.Fail("binary has no options: write 'head: binary'");
  }
  void Print(const HeadSpec& /*spec*/, YAML::Emitter& /*out*/) const override {}
  bool has_options() const override { return false; }
  absl::Status Validate(const HeadSpec& /*spec*/) const override { return absl::OkStatus(); }

  int logits_dimension(const HeadSpec& /*spec*/) const override { return 1; }
  int class_count(const HeadSpec& /*spec*/) const override { return 2; }
  features::LabelSpec::Form GetLabelForm(const HeadSpec& /*spec*/, const features::LabelSpec& label,
                                         bool /*is_list*/) const override {
    return label.form;
  }
  std::string FindFault(const HeadSpec& /*spec*/, float label) const override {
    if (label == 0 || label == 1) return "";
    return "is not 0 or 1, as a binary head needs; a label of two other values lists them "
           "('words'), "
           "one of N classes needs 'head: {multi_class: N}', a quantity 'head: regression'";
  }

  std::unique_ptr<Head> NewHead(const HeadSpec& spec) const override {
    return NewMeanHead<SigmoidCrossEntropy>(spec);
  }

  void Predict(const HeadSpec& /*spec*/, std::span<const float> logits,
               const std::vector<std::string>& class_names,
               PredictionFiller* filler) const override {
    std::ranges::copy(logits, filler->Floats("logits", 1).begin());
    std::vector<float>& logistic = filler->Floats("logistic", 1);
    std::ranges::transform(logits, logistic.begin(), Sigmoid);
    std::vector<float>& probabilities = filler->Floats("probabilities", 2);
    for (size_t i = 0; i < logits.size(); ++i) {
      probabilities[2 * i] = 1.0f - logistic[i];
      probabilities[2 * i + 1] = logistic[i];
    }
    std::vector<int64_t>& ids = filler->Ints("class_ids", 1);
    std::ranges::transform(logits, ids.begin(), [](float logit) { return logit > 0 ? 1 : 0; });
    FillClasses(ids, class_names, filler);
  }

  // Class 1 if the logit is above 0: the argmax of [0, logit].
  HeadOutputs AddNodes(const HeadSpec& /*spec*/, HeadNodes* nodes) const override {
    using formats::DataType;
    const std::string& logits = nodes->logits();
    const std::string logistic = nodes->Floats("logistic", "Sigmoid", {logits});
    const std::string zeros = nodes->Floats("zeros_like", "ZerosLike", {logits});
    const std::string two_class = nodes->Concat("two_class_logits", zeros, logits);
    const std::string probabilities = nodes->Floats("probabilities", "Softmax", {two_class});
    HeadOutputs out;
    out.predict = {{"logits", logits, DataType::kFloat, {-1, 1}},
                   {"logistic", logistic, DataType::kFloat, {-1, 1}},
                   {"probabilities", probabilities, DataType::kFloat, {-1, 2}}};
    nodes->AddClasses(two_class, probabilities, &out);
    out.regress = {{"outputs", logistic, DataType::kFloat, {-1, 1}}};
    return out;
  }
};

}  // namespace

const HeadKind& GetBinaryHead() {
  static const BinaryHead kHead;
  return kHead;
}

}  // namespace muster::engine
