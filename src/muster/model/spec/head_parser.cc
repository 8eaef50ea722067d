#include "muster/model/spec/head_parser.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/engine/heads/head_kind.h"

namespace muster::model {
namespace {

using engine::HeadSpec;
using features::LabelSpec;
using formats::YamlReader;

// Reads "head: NAME", or a map with one entry: the name and its options.
engine::HeadOptions ReadOptions(const YamlReader& node) {
  engine::HeadOptions options{.name = "", .node = node};
  if (node.IsScalar()) {
    options.name = node.AsString();
    return options;
  }
  node.ForEach([&](const std::string& key, const YamlReader& child) {
    if (!options.name.empty()) return node.Fail("must have one entry: the head");
    options = {.name = key, .node = child, .given = true};
  });
  if (node.ok() && options.name.empty()) node.Fail("must have one entry: the head");
  return options;
}

HeadSpec ParseHeadSpec(const YamlReader& node, const LabelSpec& label) {
  HeadSpec head;
  engine::HeadOptions options = ReadOptions(node);
  if (!node.ok()) return head;
  options.words = label.words.size();
  std::vector<std::string> known;
  for (const engine::HeadKind* const kind : engine::HeadKinds()) {
    known.emplace_back(kind->name());
    if (kind->name() != options.name) continue;
    head.kind = options.name;
    kind->Parse(options, &head);
    return head;
  }
  node.Fail(StrCat("unknown head '", options.name, "'", DidYouMean(options.name, known)));
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
  node.CheckKeys({"thresholds", "top_k", "per_class", "calibration_buckets", "group"});
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
  spec.group = node.String("group");
  return spec;
}

void GiveForm(const HeadSpec& head, const formats::Schema& schema, LabelSpec* label) {
  const int field = schema.Find(label->input);
  const bool is_list = field >= 0 && schema.fields[field].list;
  label->width = head.labels_dimension();
  label->form = GetHeadKind(head).GetLabelForm(head, *label, is_list);
}

}  // namespace

void ParseHead(const YamlReader& root, ModelSpec* spec) {
  if (spec->towers) spec->head.kind = "in_batch_softmax";
  if (root.Has("head")) spec->head = ParseHeadSpec(root.At("head"), spec->features.label);
  if (spec->towers) spec->head.vector_size = spec->towers->dimension;
  if (root.Has("loss_reduction")) spec->head.sums = ParseSums(root.At("loss_reduction"));
  if (root.Has("metrics")) spec->metrics = ParseMetrics(root.At("metrics"));
  if (!root.ok()) return;
  LabelSpec& label = spec->features.label;
  if (label.form == LabelSpec::Form::kSet && !GetHeadKind(spec->head).takes_sets()) {
    std::vector<std::string> takers;
    for (const engine::HeadKind* const kind : engine::HeadKinds()) {
      if (kind->takes_sets()) takers.emplace_back(kind->name());
    }
    return root.At("label").Fail(
        StrCat("'ids' can only be used with 'head: ", absl::StrJoin(takers, "' or '"), "'"));
  }
  GiveForm(spec->head, spec->features.schema, &label);
}

absl::Status CheckHead(const ModelSpec& spec) {
  MUSTER_RETURN_IF_ERROR(engine::Validate(spec.head));
  MUSTER_RETURN_IF_ERROR(metrics::Validate(spec.metrics, spec.head));
  const size_t words = spec.features.label.words.size();
  if (words == 0) return absl::OkStatus();
  const auto classes = static_cast<size_t>(spec.head.class_count());
  if (classes == 0) {
    return absl::InvalidArgumentError(
        StrCat("label.words: a ", spec.head.kind, " head learns numbers, not words"));
  }
  if (words == classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("label.words: a ", spec.head.kind, " head of ", classes, " classes needs ", classes,
             " words, but there are ", words,
             GetHeadKind(spec.head).has_options() ? "" : " (write 'head: multi_class')"));
}

}  // namespace muster::model
