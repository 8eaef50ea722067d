#include "muster/model/spec/head_parser.h"

#include <algorithm>
#include <charconv>

#include "muster/base/nearest.h"

namespace muster::model {
namespace {

using engine::HeadKind;
using engine::HeadSpec;
using engine::RegressionLoss;
using features::LabelSpec;
using formats::YamlReader;

constexpr int64_t kMaxClasses = 1 << 20;

// "head: NAME", or a map of one entry: the name and its options.
struct NamedOptions {
  std::string name;
  YamlReader options;  // a scalar, or a map; of no use without one
  bool has_options = false;
};

NamedOptions ReadNamed(const YamlReader& node) {
  NamedOptions named{"", node, false};
  if (node.IsScalar()) {
    named.name = node.AsString();
    return named;
  }
  node.ForEach([&](const std::string& key, const YamlReader& child) {
    if (!named.name.empty()) return node.Fail("has one entry: the head");
    named = {key, child, true};
  });
  if (node.ok() && named.name.empty()) node.Fail("has one entry: the head");
  return named;
}

RegressionLoss ParseLoss(const YamlReader& node, const std::string& name) {
  if (name == "mean_squared") return RegressionLoss::kMeanSquared;
  if (name == "poisson") return RegressionLoss::kPoisson;
  if (name == "log_normal") return RegressionLoss::kLogNormal;
  if (name == "logistic") return RegressionLoss::kLogistic;
  const std::vector<std::string> known = {"mean_squared", "poisson", "log_normal", "logistic"};
  if (node.ok()) node.Fail(StrCat("unknown loss '", name, "'", DidYouMean(name, known)));
  return RegressionLoss::kMeanSquared;
}

// `multi_class: 5`, `multi_class: {classes: 5}`, or as many classes as the label has words.
int ParseClasses(const NamedOptions& named, const LabelSpec& label) {
  const YamlReader& options = named.options;
  if (named.has_options && options.IsScalar()) {
    return static_cast<int>(options.AsInt(1, kMaxClasses));
  }
  if (named.has_options) {
    options.CheckKeys({"classes"});
    if (options.Has("classes")) {
      return static_cast<int>(options.At("classes").AsInt(1, kMaxClasses));
    }
  }
  if (label.words.empty() && options.ok()) {
    options.Fail(StrCat("needs its number of classes ('", named.name,
                        ": {classes: N}'), or 'words' for the label"));
  }
  return static_cast<int>(label.words.size());
}

void ParseRegression(const NamedOptions& named, HeadSpec* head) {
  const YamlReader& options = named.options;
  if (!named.has_options) return;
  if (options.IsScalar()) {
    head->loss = ParseLoss(options, options.AsString());
    return;
  }
  options.CheckKeys({"loss", "label_dimension"});
  if (options.Has("loss")) head->loss = ParseLoss(options, options.String("loss"));
  head->label_dimension = static_cast<int>(options.Int("label_dimension", 1, 1, kMaxClasses));
}

HeadSpec ParseHeadSpec(const YamlReader& node, const LabelSpec& label) {
  HeadSpec head;
  const NamedOptions named = ReadNamed(node);
  if (!node.ok()) return head;
  if (named.name == "binary") {
    if (named.has_options) named.options.Fail("binary has no options: say 'head: binary'");
  } else if (named.name == "multi_class") {
    head.kind = HeadKind::kMultiClass;
    head.classes = ParseClasses(named, label);
  } else if (named.name == "multi_label") {
    head.kind = HeadKind::kMultiLabel;
    head.classes = ParseClasses(named, label);
  } else if (named.name == "regression") {
    head.kind = HeadKind::kRegression;
    ParseRegression(named, &head);
  } else {
    const std::vector<std::string> known = {"binary", "multi_class", "multi_label", "regression"};
    node.Fail(StrCat("unknown head '", named.name, "'", DidYouMean(named.name, known)));
  }
  return head;
}

bool ParseSums(const YamlReader& node) {
  const std::string word = node.AsString();
  const std::vector<std::string> known = {"sum", "sum_over_batch_size"};
  if (node.ok() && std::ranges::find(known, word) == known.end()) {
    node.Fail(StrCat("unknown loss_reduction '", word, "'", DidYouMean(word, known)));
  }
  return word == "sum";
}

metrics::MetricsSpec ParseMetrics(const YamlReader& node) {
  node.CheckKeys({"thresholds", "top_k", "per_class", "calibration_buckets"});
  metrics::MetricsSpec spec;
  for (const std::string& text : node.Strings("thresholds")) {
    double threshold = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), threshold);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
      node.Fail(StrCat("thresholds: '", text, "' is not a number"));
    }
    spec.thresholds.push_back(threshold);
  }
  for (const std::string& text : node.Strings("top_k")) {
    int k = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), k);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
      node.Fail(StrCat("top_k: '", text, "' is not a whole number"));
    }
    spec.top_k.push_back(k);
  }
  spec.per_class = node.Bool("per_class", false);
  spec.calibration_buckets = static_cast<int>(node.Int("calibration_buckets", 0, 0, 10000));
  return spec;
}

// Sets of classes are words or 'ids: true'; other labels of several numbers are vectors.
void GiveForm(const HeadSpec& head, const formats::Schema& schema, LabelSpec* label) {
  const int field = schema.Find(label->input);
  const bool is_list = field >= 0 && schema.fields[field].list;
  label->width = head.labels_dimension();
  if (head.kind == HeadKind::kMultiLabel) {
    if (!label->words.empty()) label->form = LabelSpec::Form::kSet;
    if (label->form != LabelSpec::Form::kSet) label->form = LabelSpec::Form::kVector;
  } else if (head.is_regression() && (label->width > 1 || is_list)) {
    label->form = LabelSpec::Form::kVector;
  }
}

}  // namespace

void ParseHead(const YamlReader& root, ModelSpec* spec) {
  if (root.Has("head")) spec->head = ParseHeadSpec(root.At("head"), spec->features.label);
  if (root.Has("loss_reduction")) spec->head.sums = ParseSums(root.At("loss_reduction"));
  if (root.Has("metrics")) spec->metrics = ParseMetrics(root.At("metrics"));
  if (!root.ok()) return;
  LabelSpec& label = spec->features.label;
  if (label.form == LabelSpec::Form::kSet && spec->head.kind != HeadKind::kMultiLabel) {
    return root.At("label").Fail("'ids' is for 'head: multi_label'");
  }
  GiveForm(spec->head, spec->features.schema, &label);
}

absl::Status CheckHead(const ModelSpec& spec) {
  MUSTER_RETURN_IF_ERROR(engine::Validate(spec.head));
  MUSTER_RETURN_IF_ERROR(metrics::Validate(spec.metrics, spec.head));
  const size_t words = spec.features.label.words.size();
  if (words == 0) return absl::OkStatus();
  if (spec.head.is_regression()) {
    return absl::InvalidArgumentError("label.words: a regression head learns numbers, not words");
  }
  const size_t classes = spec.head.kind == HeadKind::kBinary ? 2 : spec.head.classes;
  if (words == classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("label.words: a ", HeadName(spec.head.kind), " head of ", classes, " classes wants ",
             classes, " words, this has ", words,
             spec.head.kind == HeadKind::kBinary ? " (say 'head: multi_class')" : ""));
}

}  // namespace muster::model
