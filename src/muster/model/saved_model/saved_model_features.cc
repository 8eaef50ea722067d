#include "muster/model/saved_model/saved_model_features.h"

#include <cmath>
#include <limits>

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using formats::BoolAttr;
using formats::DataType;
using formats::Field;
using formats::FloatsAttr;
using formats::IntAttr;
using formats::StringAttr;
using formats::TypeAttr;
using formats::TypesAttr;
using formats::ValueType;

constexpr uint64_t kDefaultHashKey = 0xDECAFCAFFE;
constexpr int64_t kStringKeys = std::numeric_limits<int64_t>::max();  // features/keys.cc

// Returns the type in which a field that gives ids is read.
DataType IdInputType(const Field& field) {
  return field.type == ValueType::kString ? DataType::kString : DataType::kInt64;
}

}  // namespace

GraphIds SavedModelFeatures::IdsInto(const ColumnSpec& column, const std::string& variable,
                                     const std::string& scope, int64_t* rows) {
  GraphIds ids = Ids(column);
  *rows = spec_.NumIds(column);
  if (!ids.keys) return ids;
  int64_t size = 0;
  const std::string table = tables_.DynamicTable(variable, &size);
  const std::string found =
      graph_.Node(StrCat(scope, "/lookup"), "LookupTableFindV2",
                  {table, ids.crossed, graph_.Int64(StrCat(scope, "/unknown_key"), size)},
                  {TypeAttr("Tin", DataType::kInt64), TypeAttr("Tout", DataType::kInt64)});
  *rows = tables_.DynamicRows(variable);
  ids.tensor = graph_.Node(StrCat(scope, "/rows_of_keys"), "SelectV2",
                           {ids.present, found, graph_.Int64(StrCat(scope, "/no_key"), -1)},
                           {TypeAttr("T", DataType::kInt64)});
  return ids;
}

std::string SavedModelFeatures::GetName(const ColumnSpec& column, std::string_view part) const {
  return StrCat(scope_, "columns/", column.name, "/", part);
}

GraphIds SavedModelFeatures::Ids(const ColumnSpec& column) {
  const auto known = ids_.find(column.name);
  if (known != ids_.end()) return known->second;
  return ids_[column.name] = MakeIds(column);
}

GraphIds SavedModelFeatures::MakeIds(const ColumnSpec& column) {
  if (column.kind == ColumnKind::kCross) return Cross(column);
  if (column.kind == ColumnKind::kWeighted) {
    GraphIds weighted = Ids(*spec_.Find(column.input));
    weighted.weights = Weights(column);
    return weighted;
  }
  const GraphInput& input = inputs_.by_field.at(column.input);
  GraphIds ids;
  ids.list = input.field->list;
  switch (column.kind) {
    case ColumnKind::kBucketized:
      ids.tensor = ids.crossed = Bucketized(column, input);
      return ids;
    case ColumnKind::kVocabulary:
      ids.crossed = Vocabulary(column, input);
      break;
    case ColumnKind::kIdentity:
      ids.crossed = Identity(column, input);
      break;
    case ColumnKind::kKeys:
      ids.keys = true;
      ids.present = input.present;
      ids.crossed = input.field->type == ValueType::kInt
                        ? input.tensor
                        : HashBucket(GetName(column, "key"), input, kStringKeys);
      return ids;
    default:
      ids.crossed = HashBucket(GetName(column, "hash_bucket"), input, column.buckets);
      break;
  }
  ids.present = input.present;
  ids.tensor = graph_.Node(GetName(column, "ids"), "SelectV2",
                           {ids.present, ids.crossed, graph_.Int64(GetName(column, "no_id"), -1)},
                           {TypeAttr("T", DataType::kInt64)});
  return ids;
}

std::string SavedModelFeatures::AsFloat(const ColumnSpec& column, const GraphInput& input,
                                        int64_t subtracted) {
  if (input.field->type == ValueType::kFloat) return input.tensor;
  std::string whole = input.tensor;
  if (subtracted != 0) {
    whole = graph_.Node(GetName(column, "whole"), "Sub",
                        {whole, graph_.Int64(GetName(column, "whole/y"), subtracted)},
                        {TypeAttr("T", DataType::kInt64)});
  }
  return graph_.Node(GetName(column, "to_float"), "Cast", {whole},
                     {TypeAttr("SrcT", DataType::kInt64), TypeAttr("DstT", DataType::kFloat)});
}

std::string SavedModelFeatures::Bucketized(const ColumnSpec& column, const GraphInput& input) {
  const std::string bucket =
      graph_.Node(GetName(column, "Bucketize"), "Bucketize", {AsFloat(column, input)},
                  {TypeAttr("T", DataType::kFloat), FloatsAttr("boundaries", column.boundaries)});
  const std::string ids =
      graph_.Node(GetName(column, "ids"), "Cast", {bucket},
                  {TypeAttr("SrcT", DataType::kInt32), TypeAttr("DstT", DataType::kInt64)});
  if (column.shape == 1) return ids;
  std::vector<int64_t> first;  // by place in the list: its first id
  for (int64_t i = 0; i < column.shape; ++i) {
    first.push_back(i * (static_cast<int64_t>(column.boundaries.size()) + 1));
  }
  return graph_.Node(GetName(column, "place_ids"), "AddV2",
                     {ids, graph_.Int64s(GetName(column, "first_ids"), first, {column.shape})},
                     {TypeAttr("T", DataType::kInt64)});
}

// The weight is zero where a list has no value.
std::string SavedModelFeatures::Weights(const ColumnSpec& column) {
  const GraphInput& input = inputs_.by_field.at(column.weights);
  const std::string weights = AsFloat(column, input);
  if (!input.field->list) return weights;
  return Floats(GetName(column, "weights"), "SelectV2",
                {input.present, weights, graph_.Float(GetName(column, "no_weight"), 0)});
}

std::string SavedModelFeatures::HashBucket(const std::string& name, const GraphInput& input,
                                           int64_t buckets) {
  std::string text = input.tensor;
  if (input.field->type == ValueType::kInt) {
    text = graph_.Node(StrCat(name, "/AsString"), "AsString", {text},
                       {TypeAttr("T", DataType::kInt64)});
  }
  return graph_.Node(name, "StringToHashBucketFast", {text}, {IntAttr("num_buckets", buckets)});
}

std::string SavedModelFeatures::Vocabulary(const ColumnSpec& column, const GraphInput& input) {
  const DataType key_type = IdInputType(*input.field);
  const std::string unknown = graph_.Int64(GetName(column, "default_id"), column.default_id);
  const std::string found =
      graph_.Node(GetName(column, "lookup"), "LookupTableFindV2",
                  {tables_.Table(column, key_type), input.tensor, unknown},
                  {TypeAttr("Tin", key_type), TypeAttr("Tout", DataType::kInt64)});
  if (column.oov_buckets == 0) return found;
  const std::string bucket = HashBucket(GetName(column, "oov_bucket"), input, column.oov_buckets);
  const std::string size =
      graph_.Int64(GetName(column, "size"), static_cast<int64_t>(column.words.size()));
  const std::string oov_id = graph_.Node(GetName(column, "oov_id"), "AddV2", {bucket, size},
                                         {TypeAttr("T", DataType::kInt64)});
  const std::string known = graph_.Node(GetName(column, "known"), "NotEqual", {found, unknown},
                                        {TypeAttr("T", DataType::kInt64)});
  return graph_.Node(GetName(column, "known_or_oov"), "SelectV2", {known, found, oov_id},
                     {TypeAttr("T", DataType::kInt64)});
}

std::string SavedModelFeatures::Identity(const ColumnSpec& column, const GraphInput& input) {
  if (column.default_id < 0) return CheckedIdentity(column, input);
  const auto compare = [&](std::string_view op, int64_t limit) {
    return graph_.Node(GetName(column, op), op,
                       {input.tensor, graph_.Int64(GetName(column, StrCat(op, "/y")), limit)},
                       {TypeAttr("T", DataType::kInt64)});
  };
  const std::string outside =
      graph_.Node(GetName(column, "out_of_range"), "LogicalOr",
                  {compare("Less", 0), compare("GreaterEqual", column.buckets)});
  return graph_.Node(
      GetName(column, "in_range"), "SelectV2",
      {outside, graph_.Int64(GetName(column, "default_id"), column.default_id), input.tensor},
      {TypeAttr("T", DataType::kInt64)});
}

// If there is no default, a value from `buckets` on makes the request fail.
std::string SavedModelFeatures::CheckedIdentity(const ColumnSpec& column, const GraphInput& input) {
  const std::string below =
      graph_.Node(GetName(column, "Less"), "Less",
                  {input.tensor, graph_.Int64(GetName(column, "Less/y"), column.buckets)},
                  {TypeAttr("T", DataType::kInt64)});
  return AddAssert(
      GetName(column, "checked"), below, input.field->list ? 2 : 1,
      StrCat("column '", column.name, "': a value is not below ", column.buckets, " in these:"),
      input.tensor, DataType::kInt64, &graph_);
}

std::string SavedModelFeatures::AsMatrix(const std::string& name, const std::string& tensor,
                                         DataType type) {
  return graph_.Node(name, "ExpandDims", {tensor, graph_.Int32(StrCat(name, "/dim"), 1)},
                     {TypeAttr("T", type), TypeAttr("Tdim", DataType::kInt32)});
}

SavedModelFeatures::Sparse SavedModelFeatures::ToSparse(const std::string& name, std::string tensor,
                                                        std::string present, bool list,
                                                        DataType type) {
  if (present.empty()) {
    present =
        graph_.Node(StrCat(name, "/everywhere"), "Equal", {tensor, tensor}, {TypeAttr("T", type)});
  }
  if (!list) {
    tensor = AsMatrix(StrCat(name, "/matrix"), tensor, type);
    present = AsMatrix(StrCat(name, "/present"), present, DataType::kBool);
  }
  Sparse sparse;
  sparse.indices =
      graph_.Node(StrCat(name, "/indices"), "Where", {present}, {TypeAttr("T", DataType::kBool)});
  sparse.values = graph_.Node(StrCat(name, "/values"), "GatherNd", {tensor, sparse.indices},
                              {TypeAttr("Tparams", type), TypeAttr("Tindices", DataType::kInt64)});
  sparse.shape = graph_.Node(StrCat(name, "/shape"), "Shape", {tensor},
                             {TypeAttr("T", type), TypeAttr("out_type", DataType::kInt64)});
  return sparse;
}

// Builds what tf.feature_column.crossed_column does: ids of columns and lists are sparse, raw
// scalar fields (also "" and -1) dense, and SparseCross takes the sparse inputs first.
GraphIds SavedModelFeatures::Cross(const ColumnSpec& column) {
  std::vector<std::string> indices, values, shapes, dense;
  std::vector<DataType> sparse_types, dense_types;
  bool one_per_row = true;
  bool has_ints = false;
  for (const std::string& key : column.keys) {
    const std::string name = GetName(column, key);
    const auto field = inputs_.by_field.find(key);
    const bool is_field = spec_.schema.Find(key) >= 0;
    const DataType type = is_field ? IdInputType(*field->second.field) : DataType::kInt64;
    has_ints |= type == DataType::kInt64;
    if (is_field && !field->second.field->list) {
      dense.push_back(AsMatrix(name, field->second.tensor, type));
      dense_types.push_back(type);
      continue;
    }
    Sparse sparse;
    if (is_field) {
      sparse = ToSparse(name, field->second.tensor, field->second.present, true, type);
      one_per_row = false;
    } else {
      const GraphIds ids = Ids(*spec_.Find(key));
      sparse = ToSparse(name, ids.crossed, ids.present, ids.list, type);
      one_per_row &= ids.present.empty() && !ids.list;
    }
    indices.push_back(sparse.indices);
    values.push_back(sparse.values);
    shapes.push_back(sparse.shape);
    sparse_types.push_back(type);
  }
  std::vector<std::string> arguments = indices;
  for (const auto* part : {&values, &shapes, &dense}) {
    arguments.insert(arguments.end(), part->begin(), part->end());
  }
  const uint64_t hash_key = column.hash_key != 0 ? column.hash_key : kDefaultHashKey;
  const std::string cross = graph_.Node(
      GetName(column, "SparseCross"), "SparseCross", arguments,
      {IntAttr("N", static_cast<int64_t>(indices.size())), BoolAttr("hashed_output", true),
       IntAttr("num_buckets", column.buckets), IntAttr("hash_key", static_cast<int64_t>(hash_key)),
       TypesAttr("sparse_types", sparse_types), TypesAttr("dense_types", dense_types),
       TypeAttr("out_type", DataType::kInt64),
       TypeAttr("internal_type", has_ints ? DataType::kInt64 : DataType::kString)});
  GraphIds ids;
  ids.list = !one_per_row;
  ids.tensor =
      one_per_row
          ? StrCat(cross, ":1")
          : graph_.Node(GetName(column, "ids"), "SparseToDense",
                        {cross, StrCat(cross, ":2"), StrCat(cross, ":1"),
                         graph_.Int64(GetName(column, "no_id"), -1)},
                        {TypeAttr("T", DataType::kInt64), TypeAttr("Tindices", DataType::kInt64)});
  return ids;
}

std::string SavedModelFeatures::Dense(const ColumnSpec& column) {
  const auto known = dense_.find(column.name);
  if (known != dense_.end()) return known->second;
  std::string& made = dense_[column.name];
  if (column.kind == ColumnKind::kIndicator) return made = Indicator(column);
  return made = column.kind == ColumnKind::kNumeric ? Numeric(column) : SequenceNumeric(column);
}

std::string SavedModelFeatures::Floats(const std::string& name, std::string_view op,
                                       std::initializer_list<std::string> inputs) {
  return graph_.Node(name, op, inputs, {TypeAttr("T", DataType::kFloat)});
}

std::string SavedModelFeatures::Scaled(const ColumnSpec& column, const GraphInput& input) {
  const int64_t whole_mean =
      input.field->type == ValueType::kInt ? features::GetWholeMean(column) : 0;
  std::string value = AsFloat(column, input, whole_mean);
  const auto apply = [&](std::string_view op, float operand) {
    value = Floats(GetName(column, op), op,
                   {value, graph_.Float(GetName(column, StrCat(op, "/y")), operand)});
  };
  if (std::isfinite(column.clip_low)) {
    apply("Maximum", column.clip_low);
    apply("Minimum", column.clip_high);
  }
  if (column.log1p) value = Log1p(column, value);
  const auto mean = static_cast<float>(column.mean - static_cast<double>(whole_mean));
  if (mean != 0) apply("Sub", mean);
  if (column.stddev != 1) apply("RealDiv", static_cast<float>(column.stddev));
  return value;
}

// Computes log(1 + x), and 0 where x is -1 or less.
std::string SavedModelFeatures::Log1p(const ColumnSpec& column, const std::string& value) {
  const std::string zero = graph_.Float(GetName(column, "Log1p/zero"), 0);
  const std::string too_small =
      Floats(GetName(column, "Log1p/too_small"), "LessEqual",
             {value, graph_.Float(GetName(column, "Log1p/minus_one"), -1)});
  const std::string counted =
      Floats(GetName(column, "Log1p/counted"), "SelectV2", {too_small, zero, value});
  return Floats(GetName(column, "Log1p"), "Log1p", {counted});
}

std::string SavedModelFeatures::Numeric(const ColumnSpec& column) {
  const GraphInput& input = inputs_.by_field.at(column.input);
  const std::string value = Scaled(column, input);
  if (input.field->list) return value;
  const std::string matrix = AsMatrix(GetName(column, "matrix"), value, DataType::kFloat);
  if (!column.missing_flag) return matrix;
  const std::string flag =
      graph_.Node(GetName(column, "missing"), "Cast", {input.missing},
                  {TypeAttr("SrcT", DataType::kBool), TypeAttr("DstT", DataType::kFloat)});
  return graph_.Node(
      GetName(column, "with_flag"), "ConcatV2",
      {matrix, AsMatrix(GetName(column, "missing/matrix"), flag, DataType::kFloat),
       graph_.Int32(GetName(column, "with_flag/axis"), 1)},
      {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", 2)});
}

std::string SavedModelFeatures::Indicator(const ColumnSpec& column) {
  const ColumnSpec& categorical = *spec_.Find(column.input);
  const GraphIds ids = Ids(categorical);
  std::string counts = graph_.Node(
      GetName(column, "one_hot"), "OneHot",
      {ids.tensor,
       graph_.Int32(GetName(column, "depth"), static_cast<int32_t>(spec_.NumIds(categorical))),
       graph_.Float(GetName(column, "on"), 1), graph_.Float(GetName(column, "off"), 0)},
      {TypeAttr("T", DataType::kFloat), TypeAttr("TI", DataType::kInt64), IntAttr("axis", -1)});
  if (!ids.weights.empty()) {
    const std::string weights =
        graph_.Node(GetName(column, "weights"), "ExpandDims",
                    {ids.weights, graph_.Int32(GetName(column, "weights/dim"), -1)},
                    {TypeAttr("T", DataType::kFloat), TypeAttr("Tdim", DataType::kInt32)});
    counts = Floats(GetName(column, "weighted"), "Mul", {counts, weights});
  }
  if (!ids.list) return counts;
  return graph_.Node(GetName(column, "Sum"), "Sum",
                     {counts, graph_.Int32(GetName(column, "Sum/axis"), 1)},
                     {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32)});
}

}  // namespace muster::model
