#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

#include "muster/engine/heads/head_kind.h"
#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"
#include "muster/model/spec/exported_spec.h"
#include "muster/model/spec/format_parser.h"
#include "muster/model/spec/model_spec.h"
#include "muster/model/spec/optimizer_printer.h"

namespace muster::model {
namespace {

using formats::EmitFlag;
using formats::EmitKey;
using formats::EmitNumber;
using formats::EmitNumbers;
using formats::EmitText;
using formats::EmitTexts;
using formats::Shortest;

// A default that a column's `impute` has set is printed with that column only.
bool IsImputed(const features::FeatureSpec& spec, const formats::Field& field) {
  return std::ranges::any_of(spec.columns, [&](const features::ColumnSpec& column) {
    return column.input == field.name && column.impute != features::Impute::kNone;
  });
}

void EmitInput(YAML::Emitter& out, const formats::Field& field, bool is_imputed) {
  EmitKey(out, field.name);
  out << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "type" << YAML::Value << std::string(formats::ValueTypeName(field.type));
  EmitFlag(out, "list", field.list);
  if (field.list) EmitText(out, "separator", std::string(1, field.separator));
  EmitFlag(out, "truncate", field.truncate);
  if (field.date_order == formats::DateOrder::kUnknown) {
    EmitFlag(out, "date", field.date);
  } else {
    EmitText(out, "date", std::string(formats::DateOrderName(field.date_order)));
  }
  if (field.has_default && !is_imputed) {
    out << YAML::Key << "default" << YAML::Value;
    switch (field.type) {
      case formats::ValueType::kInt:
        out << Shortest(std::get<int64_t>(field.default_value));
        break;
      case formats::ValueType::kFloat:
        out << Shortest(std::get<float>(field.default_value));
        break;
      case formats::ValueType::kString:
        EmitText(out, std::get<std::string>(field.default_value));
        break;
    }
  }
  if (!field.missing.empty()) EmitTexts(out, "missing", field.missing);
  out << YAML::EndMap;
}

void EmitColumn(YAML::Emitter& out, const features::ColumnSpec& column) {
  EmitKey(out, column.name);
  out << YAML::Flow << YAML::BeginMap;
  features::GetColumnType(column.kind).Print(column, out);
  out << YAML::EndMap;
}

void EmitFm(YAML::Emitter& out, const FmSpec& fm) {
  out << YAML::Key << "fm" << YAML::Value << YAML::BeginMap;
  EmitTexts(out, "columns", fm.columns);
  EmitNumber(out, "initial_stddev", fm.initial_stddev);
  EmitOptimizer(out, fm.optimizer);
  out << YAML::EndMap;
}

void EmitCross(YAML::Emitter& out, const CrossSpec& cross) {
  out << YAML::Key << "cross" << YAML::Value << YAML::BeginMap;
  EmitNumber(out, "layers", cross.layers);
  EmitNumber(out, "rank", cross.rank);
  EmitText(out, "structure", cross.parallel ? "parallel" : "stacked");
  out << YAML::EndMap;
}

void EmitDnn(YAML::Emitter& out, const char* part, const DnnSpec& dnn) {
  out << YAML::Key << part << YAML::Value << YAML::BeginMap;
  EmitTexts(out, "columns", dnn.columns);
  out << YAML::Key << "hidden_units" << YAML::Value << YAML::Flow << dnn.hidden_units;
  EmitText(out, "activation", dnn.activation);
  EmitNumber(out, "dropout", dnn.dropout);
  EmitFlag(out, "batch_norm", dnn.batch_norm);
  EmitFlag(out, "input_batch_norm", dnn.input_batch_norm);
  EmitFlag(out, "synchronized_batch_norm", dnn.synchronized_batch_norm);
  EmitNumber(out, "l1", dnn.l1);
  EmitNumber(out, "l2", dnn.l2);
  if (dnn.embedding_l1 != 0) EmitNumber(out, "embedding_l1", dnn.embedding_l1);
  if (dnn.embedding_l2 != 0) EmitNumber(out, "embedding_l2", dnn.embedding_l2);
  EmitOptimizer(out, dnn.optimizer);
  out << YAML::EndMap;
}

void EmitTowers(YAML::Emitter& out, const TowersSpec& towers) {
  EmitDnn(out, "query", towers.query);
  EmitDnn(out, "item", towers.item);
  EmitNumber(out, "dimension", towers.dimension);
  out << YAML::Key << "normalize" << YAML::Value << (towers.normalize ? "true" : "false");
}

void EmitModel(YAML::Emitter& out, const ModelSpec& spec) {
  out << YAML::Key << "model" << YAML::Value << YAML::BeginMap << YAML::Key << "type" << YAML::Value
      << (spec.type().empty() ? "linear" : std::string(spec.type()));
  if (spec.baseline) EmitOptimizer(out, spec.baseline->optimizer);
  if (spec.linear) {
    out << YAML::Key << "linear" << YAML::Value << YAML::BeginMap;
    EmitTexts(out, "columns", spec.linear->columns);
    EmitOptimizer(out, spec.linear->optimizer);
    out << YAML::EndMap;
  }
  if (spec.fm) EmitFm(out, *spec.fm);
  if (spec.dnn) EmitDnn(out, "dnn", *spec.dnn);
  if (spec.cross) EmitCross(out, *spec.cross);
  if (spec.towers) EmitTowers(out, *spec.towers);
  EmitClip(out, spec.clip_gradients);
  out << YAML::EndMap;
}

void EmitLabel(YAML::Emitter& out, const ModelSpec& spec) {
  const features::LabelSpec& label = spec.features.label;
  out << YAML::Key << "label" << YAML::Value << YAML::Flow << YAML::BeginMap;
  EmitText(out, "input", label.input);
  if (!label.words.empty()) EmitTexts(out, "words", label.words);
  EmitFlag(out, "ids", label.words.empty() && label.form == features::LabelSpec::Form::kSet);
  out << YAML::EndMap;
}

void EmitHead(YAML::Emitter& out, const engine::HeadSpec& head) {
  const engine::HeadKind& kind = GetHeadKind(head);
  out << YAML::Key << "head" << YAML::Value;
  if (!kind.has_options()) {
    out << head.kind;
    return;
  }
  out << YAML::Flow << YAML::BeginMap << YAML::Key << head.kind << YAML::Value << YAML::Flow
      << YAML::BeginMap;
  kind.Print(head, out);
  out << YAML::EndMap << YAML::EndMap;
}

void EmitMetrics(YAML::Emitter& out, const metrics::MetricsSpec& metrics) {
  if (metrics == metrics::MetricsSpec()) return;
  out << YAML::Key << "metrics" << YAML::Value << YAML::Flow << YAML::BeginMap;
  EmitNumbers(out, "thresholds", metrics.thresholds);
  EmitNumbers(out, "top_k", metrics.top_k);
  EmitFlag(out, "per_class", metrics.per_class);
  EmitNumber(out, "calibration_buckets", metrics.calibration_buckets);
  if (!metrics.group.empty()) EmitText(out, "group", metrics.group);
  out << YAML::EndMap;
}

std::string FirstDifferentLine(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = absl::StrSplit(a, '\n');
  const std::vector<std::string> right = absl::StrSplit(b, '\n');
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string& l = i < left.size() ? left[i] : "(nothing)";
    const std::string& r = i < right.size() ? right[i] : "(nothing)";
    if (l != r) {
      return StrCat("'", absl::StripAsciiWhitespace(l), "' became '", absl::StripAsciiWhitespace(r),
                    "'");
    }
  }
  return "";
}

}  // namespace

std::string PrintModelSpec(const ModelSpec& spec) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "inputs" << YAML::Value << YAML::BeginMap;
  for (const formats::Field& field : spec.features.schema.fields) {
    EmitInput(out, field, IsImputed(spec.features, field));
  }
  out << YAML::EndMap;
  EmitLabel(out, spec);
  if (!spec.features.weight.empty()) EmitText(out, "weight", spec.features.weight);
  if (!spec.features.key.empty()) EmitText(out, "key", spec.features.key);
  out << YAML::Key << "columns" << YAML::Value << YAML::BeginMap;
  for (const ColumnSpec& column : spec.features.columns) EmitColumn(out, column);
  out << YAML::EndMap;
  EmitModel(out, spec);
  EmitHead(out, spec.head);
  if (spec.head.sums) EmitText(out, "loss_reduction", "sum");
  EmitMetrics(out, spec.metrics);
  EmitDataFormat(out, spec.format);
  out << YAML::Key << "train" << YAML::Value << YAML::Flow << YAML::BeginMap;
  EmitNumber(out, "batch_size", spec.train.batch_size);
  EmitNumber(out, "epochs", spec.train.epochs);
  EmitNumber(out, "seed", spec.train.seed);
  out << YAML::Key << "shuffle" << YAML::Value << (spec.train.shuffle ? "true" : "false");
  EmitText(out, "precision",
           spec.train.precision == engine::Precision::kBfloat16 ? "bf16" : "fp32");
  out << YAML::EndMap << YAML::EndMap;
  return StrCat(out.c_str(), "\n");
}

absl::Status SaveModelSpec(io::FileSystem& files, const ModelSpec& spec,
                           const std::string& folder) {
  if (spec.exported) {
    MUSTER_RETURN_IF_ERROR(SaveExport(files, spec, io::JoinPath(folder, "exported")));
    return SaveExportedFormat(files, spec.format, folder);
  }
  ModelSpec portable = spec;
  for (ColumnSpec& column : portable.features.columns) {
    if (column.words_file.empty()) continue;
    column.words_file = StrCat(column.name, ".vocabulary.txt");
    std::string text;
    for (const std::string& word : column.words) text += StrCat(word, "\n");
    MUSTER_RETURN_IF_ERROR(
        io::WriteAsOnlyWriter(files, io::JoinPath(folder, column.words_file), text));
  }
  return io::WriteAsOnlyWriter(files, io::JoinPath(folder, "model.yaml"), PrintModelSpec(portable));
}

std::string DescribeDifference(const ModelSpec& a, const ModelSpec& b) {
  if (a.exported || b.exported) return DescribeExportedDifference(a, b);
  const auto comparable = [](ModelSpec spec) {
    spec.train = TrainDefaults();
    spec.metrics = metrics::MetricsSpec();
    spec.format = formats::DataFormat();
    spec.features.key.clear();
    std::erase_if(spec.features.schema.fields, [&spec](const formats::Field& field) {
      return field.name != spec.features.label.input && field.name != spec.features.weight &&
             !spec.HasColumnOf(field.name);
    });
    for (ColumnSpec& column : spec.features.columns) column.words_file.clear();
    return spec;
  };
  const ModelSpec left = comparable(a);
  const ModelSpec right = comparable(b);
  if (left == right) return "";
  return FirstDifferentLine(PrintModelSpec(left), PrintModelSpec(right));
}

}  // namespace muster::model
