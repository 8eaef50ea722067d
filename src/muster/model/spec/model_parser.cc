#include "muster/model/spec/model_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/model/spec/optimizer_parser.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using formats::YamlReader;

constexpr double kHuge = 1e30;
constexpr int kMostUnits = 1 << 20;

// The parts that a model of a type may have.
struct ModelType {
  std::string name;
  bool linear = false, fm = false, dnn = false, cross = false, towers = false;
};

const std::vector<ModelType>& ModelTypes() {
  static const std::vector<ModelType> kTypes = {
      {.name = "baseline"},
      {.name = "linear", .linear = true},
      {.name = "dnn", .dnn = true},
      {.name = "wide_deep", .linear = true, .dnn = true},
      {.name = "fm", .linear = true, .fm = true},
      {.name = "deepfm", .linear = true, .fm = true, .dnn = true},
      {.name = "dcn", .dnn = true, .cross = true},
      {.name = "two_tower", .towers = true},
  };
  return kTypes;
}

optim::OptimizerSpec MakeDefault(std::string_view kind, double learning_rate) {
  optim::OptimizerSpec spec = optim::DefaultOptimizer(kind);
  spec.learning_rate = learning_rate;
  return spec;
}

BaselineSpec ParseBaseline(const YamlReader& model) {
  BaselineSpec baseline;
  baseline.optimizer = MakeDefault("ftrl", 0.3);
  if (model.Has("optimizer")) baseline.optimizer = ParseOptimizer(model.At("optimizer"));
  return baseline;
}

LinearSpec ParseLinear(const YamlReader& node, double fastest) {
  node.CheckKeys({"columns", "optimizer"});
  LinearSpec linear;
  linear.columns = node.At("columns").AsStrings();
  const double columns = std::max(1.0, static_cast<double>(linear.columns.size()));
  linear.optimizer = MakeDefault("ftrl", std::min(fastest, 1 / std::sqrt(columns)));
  if (node.Has("optimizer")) linear.optimizer = ParseOptimizer(node.At("optimizer"));
  return linear;
}

FmSpec ParseFm(const YamlReader& node) {
  node.CheckKeys({"columns", "initial_stddev", "optimizer"});
  FmSpec fm;
  fm.columns = node.At("columns").AsStrings();
  fm.initial_stddev = node.Number("initial_stddev", fm.initial_stddev, 0, kHuge);
  fm.optimizer = MakeDefault("adagrad", 0.05);
  if (node.Has("optimizer")) fm.optimizer = ParseOptimizer(node.At("optimizer"));
  return fm;
}

CrossSpec ParseCross(const YamlReader& node) {
  node.CheckKeys({"layers", "rank", "structure"});
  CrossSpec cross;
  cross.layers = static_cast<int>(node.Int("layers", cross.layers, 1, 100));
  cross.rank = static_cast<int>(node.Int("rank", 0, 0, kMostUnits));
  const std::vector<std::string> structures = {"stacked", "parallel"};
  const std::string structure = node.String("structure", "stacked");
  if (node.ok() && std::ranges::find(structures, structure) == structures.end()) {
    node.At("structure")
        .Fail(StrCat("unknown structure '", structure, "'", DidYouMean(structure, structures)));
  }
  cross.parallel = structure == "parallel";
  return cross;
}

std::vector<int> ParseUnits(const YamlReader& node) {
  std::vector<int> all;
  for (const std::string& text : node.AsStrings()) {
    int units = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), units);
    if (result.ptr != text.data() + text.size() || units < 1 || units > kMostUnits) {
      node.Fail(StrCat("'", text, "' is not a number of units (1 to 1048576)"));
    }
    all.push_back(units);
  }
  return all;
}

DnnSpec ParseDnn(const YamlReader& node, double learning_rate) {
  node.CheckKeys({"columns", "hidden_units", "activation", "dropout", "batch_norm",
                  "input_batch_norm", "synchronized_batch_norm", "l1", "l2", "embedding_l1",
                  "embedding_l2", "optimizer"});
  DnnSpec dnn;
  dnn.optimizer = MakeDefault("adagrad", learning_rate);
  dnn.columns = node.At("columns").AsStrings();
  dnn.hidden_units = ParseUnits(node.At("hidden_units"));
  const std::vector<std::string> activations = {"relu", "tanh", "sigmoid", "linear"};
  dnn.activation = node.String("activation", "relu");
  if (node.ok() && Nearest(dnn.activation, activations) != dnn.activation) {
    node.Fail(StrCat("unknown activation '", dnn.activation, "'",
                     DidYouMean(dnn.activation, activations)));
  }
  dnn.dropout = node.Number("dropout", 0, 0, 0.999);
  dnn.batch_norm = node.Bool("batch_norm", false);
  dnn.input_batch_norm = node.Bool("input_batch_norm", false);
  dnn.synchronized_batch_norm = node.Bool("synchronized_batch_norm", false);
  if (dnn.synchronized_batch_norm && !dnn.batch_norm && !dnn.input_batch_norm) {
    node.Fail("synchronized_batch_norm: give batch_norm or input_batch_norm with it");
  }
  dnn.l1 = node.Number("l1", 0, 0, kHuge);
  dnn.l2 = node.Number("l2", 0, 0, kHuge);
  dnn.embedding_l1 = node.Number("embedding_l1", 0, 0, kHuge);
  dnn.embedding_l2 = node.Number("embedding_l2", 0, 0, kHuge);
  if (node.Has("optimizer")) dnn.optimizer = ParseOptimizer(node.At("optimizer"));
  return dnn;
}

TowersSpec ParseTowers(const YamlReader& node) {
  TowersSpec towers;
  towers.query = ParseDnn(node.At("query"), 0.05);
  towers.item = ParseDnn(node.At("item"), 0.05);
  towers.dimension = static_cast<int>(node.At("dimension").AsInt(1, kMostUnits));
  towers.normalize = node.Bool("normalize", true);
  return towers;
}

// Returns "'linear' or 'dnn'": the parts in which a model of this type has an optimizer.
std::string ListParts(const ModelType& type) {
  std::vector<std::string> parts;
  if (type.linear) parts.emplace_back("'linear'");
  if (type.fm) parts.emplace_back("'fm'");
  if (type.dnn) parts.emplace_back("'dnn'");
  if (type.towers) parts.insert(parts.end(), {"'query'", "'item'"});
  return absl::StrJoin(parts, " or ");
}

// Checks that every name that a model part uses is a column of a suitable kind, and used once.
absl::Status CheckPart(const ModelSpec& spec, std::string_view part,
                       const std::vector<std::string>& columns) {
  if (columns.empty()) return absl::InvalidArgumentError(StrCat("model.", part, " has no columns"));
  std::vector<std::string> known;
  for (const ColumnSpec& column : spec.features.columns) known.push_back(column.name);
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnSpec* column = spec.features.Find(columns[i]);
    const std::string what = StrCat("model.", part, ".columns: '", columns[i], "'");
    if (column == nullptr) {
      return absl::InvalidArgumentError(
          StrCat(what, " is not a column", DidYouMean(columns[i], known)));
    }
    if (part == "linear" && column->kind == ColumnKind::kEmbedding) {
      return absl::InvalidArgumentError(
          StrCat(what, " is an embedding; a linear model takes the categorical column '",
                 column->input, "' itself"));
    }
    if (part != "linear" && column->is_categorical()) {
      return absl::InvalidArgumentError(StrCat(what, " gives ids; wrap it in an ",
                                               part == "fm" ? "" : "'indicator' or ",
                                               "'embedding' column"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (columns[j] == columns[i]) {
        return absl::InvalidArgumentError(StrCat(what, " is listed twice"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDeep(const ModelSpec& spec, const std::string& part, const DnnSpec& dnn) {
  MUSTER_RETURN_IF_ERROR(CheckPart(spec, part, dnn.columns));
  if (dnn.embedding_l1 == 0 && dnn.embedding_l2 == 0) return absl::OkStatus();
  for (const std::string& name : dnn.columns) {
    const ColumnSpec& column = *spec.features.Find(name);
    if (column.kind != ColumnKind::kEmbedding ||
        spec.features.GetGrowth(*spec.features.Find(column.input)) == nullptr) {
      continue;
    }
    return absl::InvalidArgumentError(StrCat(
        "model.", part, ".columns: '", name,
        "' has a table that grows: leave out embedding_l1 and embedding_l2, which ",
        "need every row of a table at every step, or give '", column.input, "' a size ('hash')"));
  }
  return absl::OkStatus();
}

absl::Status CheckFm(const ModelSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckPart(spec, "fm", spec.fm->columns));
  if (spec.fm->columns.size() < 2) {
    return absl::InvalidArgumentError(
        "model.fm.columns: a factorization machine multiplies the vectors of pairs of columns; "
        "give two columns or more");
  }
  const ColumnSpec* first = nullptr;  // the first embedding
  for (const std::string& name : spec.fm->columns) {
    const ColumnSpec& column = *spec.features.Find(name);
    if (column.kind != ColumnKind::kEmbedding) continue;
    if (first == nullptr) first = &column;
    if (column.dimension == first->dimension) continue;
    return absl::InvalidArgumentError(StrCat("model.fm.columns: '", name, "' has dimension ",
                                             column.dimension, ", but '", first->name, "' has ",
                                             first->dimension, "; all need the same one"));
  }
  if (first == nullptr) {
    return absl::InvalidArgumentError(
        "model.fm.columns: at least one must be an embedding, since its dimension is that of all "
        "vectors");
  }
  if (spec.head.logits_dimension() != 1) {
    return absl::InvalidArgumentError(
        StrCat("model.fm: a factorization machine gives one logit per row, but the head '",
               spec.head.kind, "' needs ", spec.head.logits_dimension(),
               "; use head binary or regression, or a dcn model"));
  }
  return absl::OkStatus();
}

// A model of towers and its head need each other.
absl::Status CheckTowers(const ModelSpec& spec) {
  const bool is_softmax = spec.head.kind == "in_batch_softmax";
  if (spec.towers && !is_softmax) {
    return absl::InvalidArgumentError(
        StrCat("head: a two_tower model compares vectors, which head in_batch_softmax learns from; "
               "head ",
               spec.head.kind, " needs logits"));
  }
  if (is_softmax && !spec.towers) {
    return absl::InvalidArgumentError(
        StrCat("head in_batch_softmax: it compares the vectors of a two_tower model; a ",
               spec.type(), " model has none"));
  }
  if (spec.towers) {
    for (const std::string& column : spec.towers->query.columns) {
      if (std::ranges::find(spec.towers->item.columns, column) == spec.towers->item.columns.end()) {
        continue;
      }
      return absl::InvalidArgumentError(StrCat(
          "model.item.columns: '", column, "' is among the query's columns too; give each tower a ",
          "separate column (embeddings may share their table by 'shared')"));
    }
  }
  const std::string& name = spec.head.sampling_probability;
  if (name.empty()) return absl::OkStatus();
  const ColumnSpec* const column = spec.features.Find(name);
  if (column != nullptr && column->kind == ColumnKind::kNumeric && column->shape == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("head in_batch_softmax: sampling_probability: '", name,
                                           "' is not a numeric column with one number per row"));
}

}  // namespace

void ParseModel(const YamlReader& node, ModelSpec* spec) {
  node.CheckKeys({"type", "linear", "fm", "dnn", "cross", "query", "item", "dimension", "normalize",
                  "optimizer", "clip_gradients"});
  const YamlReader type_node = node.At("type");
  const std::string name = type_node.AsString();
  if (!node.ok()) return;
  const auto type = std::ranges::find(ModelTypes(), name, &ModelType::name);
  if (type == ModelTypes().end()) {
    std::vector<std::string> names;
    for (const ModelType& known : ModelTypes()) names.push_back(known.name);
    return type_node.Fail(StrCat("unknown model '", name, "'", DidYouMean(name, names)));
  }
  const std::pair<const char*, bool> parts[] = {
      {"linear", type->linear},    {"fm", type->fm},           {"dnn", type->dnn},
      {"cross", type->cross},      {"query", type->towers},    {"item", type->towers},
      {"dimension", type->towers}, {"normalize", type->towers}};
  for (const auto& [part, wanted] : parts) {
    if (node.Has(part) && !wanted) {
      return node.Fail(StrCat("a ", name, " model has no '", part, "' part"));
    }
  }
  const bool is_baseline = name == "baseline";
  if (node.Has("optimizer") && !is_baseline) {
    return node.Fail(
        StrCat("'optimizer' belongs in the ", ListParts(*type), " part of a ", name, " model"));
  }
  // A wide & deep model has the learning rates of tf.estimator's canned model (V2), as linear and
  // dnn models have.
  const bool is_wide_deep = name == "wide_deep";
  if (is_baseline) spec->baseline = ParseBaseline(node);
  if (type->linear) spec->linear = ParseLinear(node.At("linear"), is_wide_deep ? 0.005 : 0.2);
  if (type->fm) spec->fm = ParseFm(node.At("fm"));
  if (type->dnn) spec->dnn = ParseDnn(node.At("dnn"), is_wide_deep ? 0.001 : 0.05);
  if (type->cross) {
    spec->cross = node.Has("cross") ? ParseCross(node.At("cross")) : CrossSpec();
    if (node.ok() && spec->cross->parallel && spec->dnn->hidden_units.empty()) {
      node.At("cross").Fail(
          "structure: parallel needs a deep tower beside the cross layers; give dnn.hidden_units");
    }
  }
  if (type->towers) spec->towers = ParseTowers(node);
  if (node.Has("clip_gradients")) spec->clip_gradients = ParseClip(node.At("clip_gradients"));
}

absl::Status CheckParts(const ModelSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckTowers(spec));
  if (spec.linear) MUSTER_RETURN_IF_ERROR(CheckPart(spec, "linear", spec.linear->columns));
  if (spec.fm) MUSTER_RETURN_IF_ERROR(CheckFm(spec));
  for (const auto& [name, part] : spec.DeepParts()) {
    MUSTER_RETURN_IF_ERROR(CheckDeep(spec, name, *part));
  }
  return absl::OkStatus();
}

}  // namespace muster::model
