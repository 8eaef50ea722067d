// head: multi_label. One logit per class; a label is 0 or 1 for each class.
//
// The loss of a row: the mean over classes of the binary head's loss.
// Predictions: logits n, probabilities n (sigmoids), classes n (every name, as TensorFlow has it).
#include <algorithm>

#include "muster/engine/heads/head_kind.h"
#include "muster/engine/heads/head_of_spec.h"

namespace muster::engine {
namespace {

class MultiLabelHead final : public HeadKind {
 public:
  std::string_view name() const override { return "multi_label"; }

  void Parse(const HeadOptions& options, HeadSpec* spec) const override {
    spec->classes = ParseClasses(options);
  }
  void Print(const HeadSpec& spec, YAML::Emitter& out) const override {
    out << YAML::Key << "classes" << YAML::Value << spec.classes;
  }
  absl::Status Validate(const HeadSpec& spec) const override {
    return CheckHeadSize(spec, "classes", spec.classes, 2, " (for one label write 'head: binary')");
  }

  int logits_dimension(const HeadSpec& spec) const override { return spec.classes; }
  int class_count(const HeadSpec& spec) const override { return spec.classes; }
  // A set of classes is given as words or with 'ids: true'; any other label is a vector.
  features::LabelSpec::Form GetLabelForm(const HeadSpec& /*spec*/, const features::LabelSpec& label,
                                         bool /*is_list*/) const override {
    using Form = features::LabelSpec::Form;
    return !label.words.empty() || label.form == Form::kSet ? Form::kSet : Form::kVector;
  }
  bool takes_sets() const override { return true; }
  std::string FindFault(const HeadSpec& /*spec*/, float label) const override {
    if (label == 0 || label == 1) return "";
    return "is not 0 or 1, as each class of a multi_label head needs";
  }

  std::unique_ptr<Head> NewHead(const HeadSpec& spec) const override {
    return NewMeanHead<SigmoidCrossEntropy>(spec);
  }

  void Predict(const HeadSpec& /*spec*/, std::span<const float> logits,
               const std::vector<std::string>& class_names,
               PredictionFiller* filler) const override {
    const int width = static_cast<int>(class_names.size());
    std::ranges::copy(logits, filler->Floats("logits", width).begin());
    std::ranges::transform(logits, filler->Floats("probabilities", width).begin(), Sigmoid);
    std::ranges::copy(class_names,
                      filler->Strings("classes", width, /*same_in_all_rows=*/true).begin());
  }

  HeadOutputs AddNodes(const HeadSpec& /*spec*/, HeadNodes* nodes) const override {
    using formats::DataType;
    const std::string& logits = nodes->logits();
    const formats::GraphShape shape = {-1, nodes->classes()};
    const std::string probabilities = nodes->Floats("probabilities", "Sigmoid", {logits});
    const formats::SignatureTensor classes = {
        "classes", nodes->ClassNamesInEachRow("classes", logits), DataType::kString, shape};
    HeadOutputs out;
    out.predict = {{"logits", logits, DataType::kFloat, shape},
                   {"probabilities", probabilities, DataType::kFloat, shape},
                   classes};
    out.classes = {classes, {"scores", probabilities, DataType::kFloat, shape}};
    return out;
  }
};

}  // namespace

const HeadKind& GetMultiLabelHead() {
  static const MultiLabelHead kHead;
  return kHead;
}

}  // namespace muster::engine
