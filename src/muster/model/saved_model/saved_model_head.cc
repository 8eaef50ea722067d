#include "muster/model/saved_model/saved_model_head.h"

#include <numeric>

#include "muster/engine/predictions.h"

namespace muster::model {
namespace {

using engine::HeadKind;
using formats::DataType;
using formats::GraphDefBuilder;
using formats::IntAttr;
using formats::SignatureTensor;
using formats::TypeAttr;

class HeadWriter {
 public:
  HeadWriter(const ModelSpec& spec, std::string logits, const std::string& scope,
             GraphDefBuilder* graph)
      : head_(spec.head),
        class_names_(engine::Predictor(spec.head, spec.features.label.words).class_names()),
        logits_(std::move(logits)),
        name_(StrCat(scope, "head/predictions")),
        graph_(*graph) {}

  // Class 1 when the logit is above 0: the argmax of [0, logit].
  HeadOutputs Binary() {
    const std::string logistic = Floats("logistic", "Sigmoid", {logits_});
    const std::string zeros = Floats("zeros_like", "ZerosLike", {logits_});
    const std::string two_class =
        graph_.Node(StrCat(name_, "/two_class_logits"), "ConcatV2", {zeros, logits_, LastAxis()},
                    {FloatType(), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", 2)});
    const std::string probabilities = Floats("probabilities", "Softmax", {two_class});
    HeadOutputs out;
    out.predict = {{"logits", logits_, DataType::kFloat, {-1, 1}},
                   {"logistic", logistic, DataType::kFloat, {-1, 1}},
                   {"probabilities", probabilities, DataType::kFloat, {-1, 2}}};
    AddClasses(two_class, probabilities, &out);
    out.regress = {{"outputs", logistic, DataType::kFloat, {-1, 1}}};
    return out;
  }

  HeadOutputs MultiClass() {
    const std::string probabilities = Floats("probabilities", "Softmax", {logits_});
    HeadOutputs out;
    out.predict = {{"logits", logits_, DataType::kFloat, {-1, classes()}},
                   {"probabilities", probabilities, DataType::kFloat, {-1, classes()}}};
    AddClasses(logits_, probabilities, &out);
    return out;
  }

  HeadOutputs MultiLabel() {
    const std::string probabilities = Floats("probabilities", "Sigmoid", {logits_});
    const std::string names = ForEachRow("classes", ClassNames(), DataType::kString);
    const SignatureTensor classes_tensor = {"classes", names, DataType::kString, {-1, classes()}};
    HeadOutputs out;
    out.predict = {{"logits", logits_, DataType::kFloat, {-1, classes()}},
                   {"probabilities", probabilities, DataType::kFloat, {-1, classes()}},
                   classes_tensor};
    out.classes = {classes_tensor, {"scores", probabilities, DataType::kFloat, {-1, classes()}}};
    return out;
  }

  HeadOutputs Regression() {
    const bool has_link = head_.loss != engine::RegressionLoss::kMeanSquared;
    const std::string predictions = Floats("predictions", InverseLinkOp(), {logits_});
    const formats::GraphShape shape = {-1, head_.label_dimension};
    HeadOutputs out;
    out.predict = {{"predictions", predictions, DataType::kFloat, shape}};
    if (has_link) out.predict.push_back({"logits", logits_, DataType::kFloat, shape});
    out.regress = {{"outputs", predictions, DataType::kFloat, shape}};
    return out;
  }

 private:
  // engine::InverseLink
  std::string_view InverseLinkOp() const {
    switch (head_.loss) {
      case engine::RegressionLoss::kMeanSquared:
        return "Identity";
      case engine::RegressionLoss::kPoisson:
      case engine::RegressionLoss::kLogNormal:
        return "Exp";
      case engine::RegressionLoss::kLogistic:
        break;
    }
    return "Sigmoid";
  }
  static formats::GraphAttr FloatType() { return TypeAttr("T", DataType::kFloat); }
  int64_t classes() const { return static_cast<int64_t>(class_names_.size()); }

  // A node whose one type attribute is T = float.
  std::string Floats(std::string_view name, std::string_view op,
                     std::initializer_list<std::string> inputs) {
    return graph_.Node(StrCat(name_, "/", name), op, inputs, {FloatType()});
  }

  const std::string& LastAxis() {
    if (last_axis_.empty()) last_axis_ = graph_.Int32(StrCat(name_, "/axis"), -1);
    return last_axis_;
  }

  const std::string& ClassNames() {
    if (names_node_.empty()) {
      names_node_ = graph_.Strings(StrCat(name_, "/class_names"), class_names_, {classes()});
    }
    return names_node_;
  }

  // class_ids, classes, all_class_ids, all_classes and the classification signature. `scores` is
  // [batch, classes], its largest is the class.
  void AddClasses(const std::string& scores, const std::string& probabilities, HeadOutputs* out) {
    const std::string best = graph_.Node(StrCat(name_, "/ArgMax"), "ArgMax", {scores, LastAxis()},
                                         {FloatType(), TypeAttr("Tidx", DataType::kInt32),
                                          TypeAttr("output_type", DataType::kInt64)});
    const std::string ids =
        graph_.Node(StrCat(name_, "/class_ids"), "ExpandDims", {best, LastAxis()},
                    {TypeAttr("T", DataType::kInt64), TypeAttr("Tdim", DataType::kInt32)});
    const std::string words =
        graph_.Node(StrCat(name_, "/classes"), "GatherV2",
                    {ClassNames(), ids, graph_.Int32(StrCat(name_, "/classes/axis"), 0)},
                    {TypeAttr("Tparams", DataType::kString), TypeAttr("Tindices", DataType::kInt64),
                     TypeAttr("Taxis", DataType::kInt32)});
    std::vector<int32_t> numbers(class_names_.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    shape_of_ = probabilities;
    const std::string all_ids = ForEachRow(
        "all_class_ids", graph_.Int32s(StrCat(name_, "/class_numbers"), numbers, {classes()}),
        DataType::kInt32);
    const std::string all_words = ForEachRow("all_classes", ClassNames(), DataType::kString);
    out->predict.push_back({"class_ids", ids, DataType::kInt64, {-1, 1}});
    out->predict.push_back({"classes", words, DataType::kString, {-1, 1}});
    out->predict.push_back({"all_class_ids", all_ids, DataType::kInt32, {-1, classes()}});
    out->predict.push_back({"all_classes", all_words, DataType::kString, {-1, classes()}});
    out->classes = {{"classes", all_words, DataType::kString, {-1, classes()}},
                    {"scores", probabilities, DataType::kFloat, {-1, classes()}}};
  }

  // `values`, [classes], in every row: [batch, classes].
  std::string ForEachRow(std::string_view name, const std::string& values, DataType type) {
    const std::string node = StrCat(name_, "/", name);
    const std::string shape =
        graph_.Node(StrCat(node, "/Shape"), "Shape", {shape_of_.empty() ? logits_ : shape_of_},
                    {FloatType(), TypeAttr("out_type", DataType::kInt32)});
    return graph_.Node(node, "BroadcastTo", {values, shape},
                       {TypeAttr("T", type), TypeAttr("Tidx", DataType::kInt32)});
  }

  const engine::HeadSpec head_;
  const std::vector<std::string> class_names_;
  const std::string logits_;
  const std::string name_;
  GraphDefBuilder& graph_;
  std::string last_axis_, names_node_;
  std::string shape_of_;  // a [batch, classes] tensor other than the logits
};

}  // namespace

HeadOutputs AddHead(const ModelSpec& spec, const std::string& logits, const std::string& scope,
                    GraphDefBuilder* graph) {
  HeadWriter writer(spec, logits, scope, graph);
  switch (spec.head.kind) {
    case HeadKind::kBinary:
      return writer.Binary();
    case HeadKind::kMultiClass:
      return writer.MultiClass();
    case HeadKind::kMultiLabel:
      return writer.MultiLabel();
    case HeadKind::kRegression:
      break;
  }
  return writer.Regression();
}

}  // namespace muster::model
