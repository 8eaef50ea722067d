// head: multi_class. One logit per class; a label is the number of one class.
//
// The loss of a row: log(sum over j of exp(x_j)) - x_z (sparse_softmax_cross_entropy).
// Predictions: logits n, probabilities n (softmax), class_ids 1 (the first largest logit),
// classes 1, all_class_ids n, all_classes n.
#include <algorithm>
#include <cmath>

#include "muster/engine/heads/head_kind.h"
#include "muster/engine/heads/head_of_spec.h"

namespace muster::engine {
namespace {

class SoftmaxHead final : public HeadOfSpec {
 public:
  explicit SoftmaxHead(const HeadSpec& spec)
      : HeadOfSpec(spec), classes_(static_cast<size_t>(spec.classes)) {}

  void Loss(std::span<const float> logits, std::span<const float> labels,
            std::span<const float> weights, float scale, double* loss_sum,
            std::span<float> gradient) const override {
    for (size_t row = 0; row < labels.size(); ++row) {
      const std::span<const float> x = logits.subspan(row * classes_, classes_);
      const auto label = static_cast<size_t>(labels[row]);
      const float weight = weights.empty() ? 1 : weights[row];
      const float largest = *std::ranges::max_element(x);
      float sum = 0;
      for (const float logit : x) sum += std::exp(logit - largest);
      *loss_sum += static_cast<double>(weight) * (std::log(sum) - (x[label] - largest));
      if (gradient.empty()) continue;
      float* const out = gradient.data() + row * classes_;
      const float factor = scale * weight;
      for (size_t i = 0; i < classes_; ++i) {
        const float probability = std::exp(x[i] - largest) / sum;
        out[i] = factor * (probability - (i == label ? 1.0f : 0.0f));
      }
    }
  }

 private:
  const size_t classes_;
};

class MultiClassHead final : public HeadKind {
 public:
  std::string_view name() const override { return "multi_class"; }

  void Parse(const HeadOptions& options, HeadSpec* spec) const override {
    spec->classes = ParseClasses(options);
  }
  void Print(const HeadSpec& spec, YAML::Emitter& out) const override {
    out << YAML::Key << "classes" << YAML::Value << spec.classes;
  }
  absl::Status Validate(const HeadSpec& spec) const override {
    return CheckHeadSize(spec, "classes", spec.classes, 3, " (for 2 classes write 'head: binary')");
  }

  int logits_dimension(const HeadSpec& spec) const override { return spec.classes; }
  int labels_dimension(const HeadSpec& /*spec*/) const override { return 1; }
  int class_count(const HeadSpec& spec) const override { return spec.classes; }
  features::LabelSpec::Form GetLabelForm(const HeadSpec& /*spec*/, const features::LabelSpec& label,
                                         bool /*is_list*/) const override {
    return label.form;
  }
  std::string FindFault(const HeadSpec& spec, float label) const override {
    if (label >= 0 && label < static_cast<float>(spec.classes) && label == std::floor(label)) {
      return "";
    }
    return StrCat("is no class of a multi_class head of ", spec.classes, " classes");
  }

  std::unique_ptr<Head> NewHead(const HeadSpec& spec) const override {
    return std::make_unique<SoftmaxHead>(spec);
  }

  void Predict(const HeadSpec& /*spec*/, std::span<const float> logits,
               const std::vector<std::string>& class_names,
               PredictionFiller* filler) const override {
    const size_t width = class_names.size(), rows = logits.size() / width;
    std::ranges::copy(logits, filler->Floats("logits", static_cast<int>(width)).begin());
    std::vector<float>& probabilities = filler->Floats("probabilities", static_cast<int>(width));
    std::vector<int64_t>& ids = filler->Ints("class_ids", 1);
    for (size_t row = 0; row < rows; ++row) {
      const std::span<const float> of_row = logits.subspan(row * width, width);
      Softmax(of_row, std::span(probabilities).subspan(row * width, width));
      ids[row] = LargestLogit(of_row);
    }
    FillClasses(ids, class_names, filler);
  }

  HeadOutputs AddNodes(const HeadSpec& /*spec*/, HeadNodes* nodes) const override {
    using formats::DataType;
    const std::string& logits = nodes->logits();
    const std::string probabilities = nodes->Floats("probabilities", "Softmax", {logits});
    HeadOutputs out;
    out.predict = {{"logits", logits, DataType::kFloat, {-1, nodes->classes()}},
                   {"probabilities", probabilities, DataType::kFloat, {-1, nodes->classes()}}};
    nodes->AddClasses(logits, probabilities, &out);
    return out;
  }
};

}  // namespace

const HeadKind& GetMultiClassHead() {
  static const MultiClassHead kHead;
  return kHead;
}

}  // namespace muster::engine
