#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "muster/base/nearest.h"
#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {

// Each of these is defined in the file of its name.
const ColumnType& GetNumericColumn();
const ColumnType& GetBucketizedColumn();
const ColumnType& GetVocabularyColumn();
const ColumnType& GetIdentityColumn();
const ColumnType& GetHashColumn();
const ColumnType& GetKeysColumn();
const ColumnType& GetCrossColumn();
const ColumnType& GetWeightedColumn();
const ColumnType& GetIndicatorColumn();
const ColumnType& GetEmbeddingColumn();
const ColumnType& GetSequenceNumericColumn();

namespace {

constexpr double kLargest = 1e30;
constexpr const char* kPoolings[] = {"none", "sum", "mean", "sqrtn", "max", "last"};

}  // namespace

std::span<const ColumnType* const> ColumnTypes() {
  static const ColumnType* const kTypes[] = {
      &GetNumericColumn(),   &GetBucketizedColumn(),     &GetVocabularyColumn(),
      &GetIdentityColumn(),  &GetHashColumn(),           &GetKeysColumn(),
      &GetCrossColumn(),     &GetWeightedColumn(),       &GetIndicatorColumn(),
      &GetEmbeddingColumn(), &GetSequenceNumericColumn()};
  return kTypes;
}

const ColumnType& GetColumnType(ColumnKind kind) {
  const auto found = std::ranges::find(ColumnTypes(), kind, &ColumnType::kind);
  if (found == ColumnTypes().end()) std::abort();
  return **found;
}

std::string ColumnType::FindCrossFault(const ColumnSpec& /*column*/) const {
  return "is not categorical; give a field or a bucketized, vocabulary or identity column";
}

int ParseShape(const formats::YamlReader& node) {
  return static_cast<int>(node.Int("shape", 1, 1, 65536));
}

void ParseScale(const formats::YamlReader& node, ColumnSpec* column) {
  column->shape = ParseShape(node);
  column->log1p = node.Bool("log1p", false);
  column->mean = node.Number("mean", 0, -kLargest, kLargest);
  column->stddev = node.Number("stddev", 1, 1e-30, kLargest);
  if (node.Has("normalize")) {
    const std::string how = node.String("normalize");
    if (how != "auto") {
      node.At("normalize")
          .Fail(StrCat("is '", how, "'; give auto, or leave it out and give mean ", "and stddev"));
    }
    column->normalize = true;
    if (node.Has("mean") != node.Has("stddev")) {
      node.Fail(
          "with 'normalize: auto' give both mean and stddev, once they are known, or neither");
    }
    column->to_measure = !node.Has("mean");
  }
  if (!node.Has("clip")) return;
  const std::vector<float> range = node.At("clip").AsFloats();
  if (range.size() == 2 && range[0] < range[1]) {
    column->clip_low = range[0];
    column->clip_high = range[1];
  } else {
    node.At("clip").Fail("needs two numbers, the lower one first: [0, 100]");
  }
}

void PrintScale(const ColumnSpec& column, YAML::Emitter& out) {
  if (column.shape != 1) formats::EmitNumber(out, "shape", column.shape);
  formats::EmitFlag(out, "log1p", column.log1p);
  if (column.normalize) out << YAML::Key << "normalize" << YAML::Value << "auto";
  if (std::isfinite(column.clip_low)) {
    formats::EmitNumbers(out, "clip", std::vector<float>{column.clip_low, column.clip_high});
  }
  if (column.normalize && column.to_measure) return;
  formats::EmitNumber(out, "mean", column.mean);
  formats::EmitNumber(out, "stddev", column.stddev);
}

Pooling ParsePooling(const formats::YamlReader& node) {
  const std::vector<std::string> known(std::begin(kPoolings) + 1, std::end(kPoolings));
  const std::string pooling = node.AsString();
  for (size_t i = 0; i < known.size(); ++i) {
    if (pooling == known[i]) return static_cast<Pooling>(i + 1);
  }
  if (node.ok()) node.Fail(StrCat("unknown pooling '", pooling, "'", DidYouMean(pooling, known)));
  return Pooling::kNone;
}

void PrintPooling(Pooling pooling, YAML::Emitter& out) {
  out << YAML::Key << "pooling" << YAML::Value << kPoolings[static_cast<int>(pooling)];
}

}  // namespace muster::features
