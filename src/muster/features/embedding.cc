// Embedding columns. The engine looks up their rows, by the ids of their input.
#include <cmath>

#include "muster/base/nearest.h"
#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

constexpr int kMaxDimension = 1 << 16;
constexpr double kLargestNorm = 1e30;
constexpr const char* kCombiners[] = {"sum", "mean", "sqrtn"};

class EmbeddingColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kEmbedding; }
  std::string_view name() const override { return "embedding"; }
  bool is_categorical() const override { return false; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"embedding", "dimension", "combiner", "pooling", "shared", "max_norm"});
    column->input = node.At("embedding").AsString();
    column->dimension = static_cast<int>(node.At("dimension").AsInt(1, 65536));
    const std::string combiner = node.String("combiner", "mean");
    if (combiner == "sum") {
      column->combiner = Combiner::kSum;
    } else if (combiner == "sqrtn") {
      column->combiner = Combiner::kSqrtN;
    } else if (combiner != "mean" && node.ok()) {
      const std::vector<std::string> known = {"mean", "sum", "sqrtn"};
      node.Fail(StrCat("unknown combiner '", combiner, "'", DidYouMean(combiner, known)));
    }
    if (node.ok() && node.Has("pooling")) {
      if (node.Has("combiner")) node.Fail("give either 'combiner' or 'pooling', not both");
      column->pooling = ParsePooling(node.At("pooling"));
    }
    column->shared = node.String("shared");
    column->max_norm = node.Number("max_norm", 0, 1e-30, kLargestNorm);
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "embedding", column.input);
    formats::EmitNumber(out, "dimension", column.dimension);
    if (column.pooling != Pooling::kNone) {
      PrintPooling(column.pooling, out);
    } else {
      out << YAML::Key << "combiner" << YAML::Value
          << kCombiners[static_cast<int>(column.combiner)];
    }
    if (!column.shared.empty()) formats::EmitText(out, "shared", column.shared);
    if (column.max_norm != 0) formats::EmitNumber(out, "max_norm", column.max_norm);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const ColumnSpec& column = check.column();
    const FeatureSpec& spec = check.spec();
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* input, check.Categorical());
    if (column.dimension < 1 || column.dimension > kMaxDimension) {
      return Invalid("dimension is ", column.dimension, "; it must be in [1, ", kMaxDimension, "]");
    }
    if (!(column.max_norm >= 0) || !std::isfinite(static_cast<float>(column.max_norm))) {
      return Invalid("max_norm is ", column.max_norm, "; it must be a finite float above 0");
    }
    if (column.pooling == Pooling::kNone) return absl::OkStatus();
    if (column.combiner != Combiner::kMean) return Invalid("has both a pooling and a combiner");
    if (input->kind == ColumnKind::kWeighted) {
      return Invalid("the steps of a sequence have no weights; '", input->name, "' is weighted");
    }
    if (spec.HasLists(*input)) return absl::OkStatus();
    return Invalid("a pooling is for sequences; '", input->name, "' has one id per row");
  }

  int Width(const FeatureSpec& /*spec*/, const ColumnSpec& column) const override {
    return column.dimension;
  }
  void CollectUses(const FeatureSpec& spec, const ColumnSpec& column,
                   std::set<std::string>* used_columns,
                   std::set<std::string>* used_fields) const override {
    spec.CollectUses(column.input, used_columns, used_fields);
  }
};

}  // namespace

const ColumnType& GetEmbeddingColumn() {
  static const EmbeddingColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
