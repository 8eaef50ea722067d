#include <yaml-cpp/yaml.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

#include "muster/model/spec/exported_spec.h"
#include "muster/model/spec/format_parser.h"
#include "muster/model/spec/model_spec.h"
#include "muster/model/spec/optimizer_printer.h"
#include "muster/model/spec/spec_emitter.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;

void EmitInput(YAML::Emitter& out, const formats::Field& field) {
  EmitKey(out, field.name);
  out << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "type" << YAML::Value << std::string(formats::ValueTypeName(field.type));
  EmitFlag(out, "list", field.list);
  if (field.list) EmitText(out, "separator", std::string(1, field.separator));
  EmitFlag(out, "truncate", field.truncate);
  EmitFlag(out, "date", field.date);
  if (field.has_default) {
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

void EmitVocabulary(YAML::Emitter& out, const ColumnSpec& column) {
  EmitText(out, "vocabulary", column.input);
  if (column.words_file.empty()) {
    EmitTexts(out, "words", column.words);
  } else {
    EmitText(out, "file", column.words_file);
  }
  if (column.oov_buckets > 0) EmitNumber(out, "oov_buckets", column.oov_buckets);
  if (column.default_id >= 0) EmitNumber(out, "default", column.default_id);
}

void EmitScale(YAML::Emitter& out, const ColumnSpec& column) {
  if (column.shape != 1) EmitNumber(out, "shape", column.shape);
  EmitFlag(out, "log1p", column.log1p);
  EmitNumber(out, "mean", column.mean);
  EmitNumber(out, "stddev", column.stddev);
}

void EmitPooling(YAML::Emitter& out, features::Pooling pooling) {
  static constexpr const char* kPoolings[] = {"none", "sum", "mean", "sqrtn", "max", "last"};
  out << YAML::Key << "pooling" << YAML::Value << kPoolings[static_cast<int>(pooling)];
}

void EmitColumn(YAML::Emitter& out, const ColumnSpec& column) {
  static constexpr const char* kCombiners[] = {"sum", "mean", "sqrtn"};
  EmitKey(out, column.name);
  out << YAML::Flow << YAML::BeginMap;
  switch (column.kind) {
    case ColumnKind::kNumeric:
      EmitText(out, "numeric", column.input);
      EmitScale(out, column);
      break;
    case ColumnKind::kSequenceNumeric:
      EmitText(out, "sequence_numeric", column.input);
      EmitPooling(out, column.pooling);
      EmitScale(out, column);
      break;
    case ColumnKind::kBucketized:
      EmitText(out, "bucketized", column.input);
      out << YAML::Key << "boundaries" << YAML::Value << YAML::Flow << YAML::BeginSeq;
      for (const float boundary : column.boundaries) out << Shortest(boundary);
      out << YAML::EndSeq;
      if (column.shape != 1) EmitNumber(out, "shape", column.shape);
      break;
    case ColumnKind::kVocabulary:
      EmitVocabulary(out, column);
      break;
    case ColumnKind::kIdentity:
      EmitText(out, "identity", column.input);
      EmitNumber(out, "buckets", column.buckets);
      if (column.default_id >= 0) EmitNumber(out, "default", column.default_id);
      break;
    case ColumnKind::kHash:
      EmitText(out, "hash", column.input);
      EmitNumber(out, "buckets", column.buckets);
      break;
    case ColumnKind::kKeys:
      EmitText(out, "keys", column.input);
      EmitNumber(out, "admit_after", column.growth.admit_after);
      EmitNumber(out, "expire_after", column.growth.expire_after);
      EmitNumber(out, "capacity", column.growth.capacity);
      break;
    case ColumnKind::kCross:
      EmitTexts(out, "cross", column.keys);
      EmitNumber(out, "buckets", column.buckets);
      EmitNumber(out, "hash_key", column.hash_key);
      break;
    case ColumnKind::kWeighted:
      EmitText(out, "weighted", column.input);
      EmitText(out, "weights", column.weights);
      break;
    case ColumnKind::kIndicator:
      EmitText(out, "indicator", column.input);
      break;
    case ColumnKind::kEmbedding:
      EmitText(out, "embedding", column.input);
      EmitNumber(out, "dimension", column.dimension);
      if (column.pooling != features::Pooling::kNone) {
        EmitPooling(out, column.pooling);
      } else {
        out << YAML::Key << "combiner" << YAML::Value
            << kCombiners[static_cast<int>(column.combiner)];
      }
      if (!column.shared.empty()) EmitText(out, "shared", column.shared);
      if (column.max_norm != 0) EmitNumber(out, "max_norm", column.max_norm);
      break;
  }
  out << YAML::EndMap;
}

void EmitDnn(YAML::Emitter& out, const DnnSpec& dnn) {
  out << YAML::Key << "dnn" << YAML::Value << YAML::BeginMap;
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

void EmitModel(YAML::Emitter& out, const ModelSpec& spec) {
  out << YAML::Key << "model" << YAML::Value << YAML::BeginMap << YAML::Key << "type" << YAML::Value
      << (spec.baseline             ? "baseline"
          : spec.linear && spec.dnn ? "wide_deep"
          : spec.dnn                ? "dnn"
                                    : "linear");
  if (spec.baseline) EmitOptimizer(out, spec.baseline->optimizer);
  if (spec.linear) {
    out << YAML::Key << "linear" << YAML::Value << YAML::BeginMap;
    EmitTexts(out, "columns", spec.linear->columns);
    EmitOptimizer(out, spec.linear->optimizer);
    out << YAML::EndMap;
  }
  if (spec.dnn) EmitDnn(out, *spec.dnn);
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
  const std::string name(HeadName(head.kind));
  out << YAML::Key << "head" << YAML::Value;
  if (head.kind == engine::HeadKind::kBinary) {
    out << name;
    return;
  }
  out << YAML::Flow << YAML::BeginMap << YAML::Key << name << YAML::Value << YAML::Flow
      << YAML::BeginMap;
  if (head.is_regression()) {
    EmitText(out, "loss", std::string(LossName(head.loss)));
    EmitNumber(out, "label_dimension", head.label_dimension);
  } else {
    EmitNumber(out, "classes", head.classes);
  }
  out << YAML::EndMap << YAML::EndMap;
}

void EmitMetrics(YAML::Emitter& out, const metrics::MetricsSpec& metrics) {
  if (metrics == metrics::MetricsSpec()) return;
  out << YAML::Key << "metrics" << YAML::Value << YAML::Flow << YAML::BeginMap;
  EmitNumbers(out, "thresholds", metrics.thresholds);
  EmitNumbers(out, "top_k", metrics.top_k);
  EmitFlag(out, "per_class", metrics.per_class);
  EmitNumber(out, "calibration_buckets", metrics.calibration_buckets);
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
  for (const formats::Field& field : spec.features.schema.fields) EmitInput(out, field);
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
  if (spec.exported) return SaveExport(files, spec, io::JoinPath(folder, "exported"));
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
    for (ColumnSpec& column : spec.features.columns) column.words_file.clear();
    return spec;
  };
  const ModelSpec left = comparable(a);
  const ModelSpec right = comparable(b);
  if (left == right) return "";
  return FirstDifferentLine(PrintModelSpec(left), PrintModelSpec(right));
}

}  // namespace muster::model
