#include "muster/model/spec/feature_parser.h"

#include <limits>
#include <utility>

#include "absl/strings/str_split.h"

#include "muster/base/nearest.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using features::Pooling;
using formats::Field;
using formats::ValueType;

constexpr uint64_t kMaxVocabularyBytes = uint64_t{1} << 30;
constexpr double kLargest = 1e30;
constexpr int64_t kMaxSteps = int64_t{1} << 53;
constexpr int64_t kMaxTableRows = std::numeric_limits<int32_t>::max();

ValueType ParseType(const YamlReader& node, const std::string& text) {
  if (text == "int") return ValueType::kInt;
  if (text == "float") return ValueType::kFloat;
  if (text == "string") return ValueType::kString;
  const std::vector<std::string> known = {"int", "float", "string"};
  if (node.ok()) node.Fail(StrCat("unknown type '", text, "'", DidYouMean(text, known)));
  return ValueType::kString;
}

formats::Value ParseDefault(const YamlReader& node, ValueType type) {
  switch (type) {
    case ValueType::kInt:
      return node.AsInt(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    case ValueType::kFloat:
      return static_cast<float>(
          node.AsNumber(-std::numeric_limits<float>::max(), std::numeric_limits<float>::max()));
    case ValueType::kString:
      break;
  }
  return node.AsString();
}

Field ParseInputField(const std::string& name, const YamlReader& node) {
  Field field;
  field.name = name;
  if (node.IsScalar()) {
    field.type = ParseType(node, node.AsString());
  } else {
    node.CheckKeys({"type", "list", "separator", "truncate", "date", "default", "missing"});
    field.type = ParseType(node, node.At("type").AsString());
    field.list = node.Bool("list", false);
    const std::string separator = node.String("separator", "|");
    if (separator.size() == 1) field.separator = separator[0];
    if (node.ok() && separator.size() != 1) node.Fail("separator must be one character");
    field.truncate = node.Bool("truncate", false);
    if (node.ok() && field.truncate && field.type != ValueType::kInt) {
      node.Fail("truncate is for type int");
    }
    field.date = node.Bool("date", false);
    if (node.ok() && field.date && field.type != ValueType::kInt) node.Fail("date is for type int");
    field.missing = node.Strings("missing");
    if (node.Has("default")) {
      if (field.list) node.Fail("a list has no default: without a value it is empty");
      field.has_default = true;
      field.default_value = ParseDefault(node.At("default"), field.type);
    }
  }
  if (field.type == ValueType::kString && !field.list && !field.has_default) {
    field.has_default = true;
    field.default_value = std::string();
  }
  return field;
}

void ParseLabelSpec(const YamlReader& node, features::LabelSpec* label) {
  if (node.IsScalar()) {
    label->input = node.AsString();
    return;
  }
  node.CheckKeys({"input", "words", "ids"});
  label->input = node.At("input").AsString();
  label->words = node.Strings("words");
  if (node.Bool("ids", false)) {
    if (!label->words.empty()) node.Fail("'words' and 'ids' exclude each other");
    label->form = features::LabelSpec::Form::kSet;
  }
}

// A vocabulary file: one word a line, LF or CRLF; the last line may lack its end.
absl::StatusOr<std::vector<std::string>> ReadWords(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, path, kMaxVocabularyBytes));
  std::vector<std::string> words = absl::StrSplit(text, '\n');
  if (!words.empty() && words.back().empty()) words.pop_back();
  for (std::string& word : words) {
    if (!word.empty() && word.back() == '\r') word.pop_back();
  }
  return words;
}

class ColumnParser {
 public:
  ColumnParser(io::FileSystem& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}

  ColumnSpec Parse(const std::string& name, const YamlReader& node) {
    ColumnSpec column;
    column.name = name;
    if (node.Has("numeric")) {
      node.CheckKeys({"numeric", "shape", "log1p", "mean", "stddev"});
      column.kind = ColumnKind::kNumeric;
      column.input = node.At("numeric").AsString();
      ParseScale(node, &column);
    } else if (node.Has("sequence_numeric")) {
      node.CheckKeys({"sequence_numeric", "pooling", "shape", "log1p", "mean", "stddev"});
      column.kind = ColumnKind::kSequenceNumeric;
      column.input = node.At("sequence_numeric").AsString();
      column.pooling = ParsePooling(node.At("pooling"));
      ParseScale(node, &column);
    } else if (node.Has("bucketized")) {
      node.CheckKeys({"bucketized", "boundaries", "shape"});
      column.kind = ColumnKind::kBucketized;
      column.input = node.At("bucketized").AsString();
      column.boundaries = node.At("boundaries").AsFloats();
      column.shape = ParseShape(node);
    } else if (node.Has("vocabulary")) {
      ParseVocabulary(node, &column);
    } else if (node.Has("identity")) {
      node.CheckKeys({"identity", "buckets", "default"});
      column.kind = ColumnKind::kIdentity;
      column.input = node.At("identity").AsString();
      column.buckets = node.At("buckets").AsInt(1, kMaxTableRows);
      column.default_id = node.Int("default", -1, -1, kMaxTableRows);
    } else if (node.Has("hash")) {
      node.CheckKeys({"hash", "buckets"});
      column.kind = ColumnKind::kHash;
      column.input = node.At("hash").AsString();
      column.buckets = node.At("buckets").AsInt(1, kMaxTableRows);
    } else if (node.Has("keys")) {
      node.CheckKeys({"keys", "admit_after", "expire_after", "capacity"});
      column.kind = ColumnKind::kKeys;
      column.input = node.At("keys").AsString();
      column.growth.admit_after = node.Int("admit_after", 1, 1, kMaxSteps);
      column.growth.expire_after = node.Int("expire_after", 0, 0, kMaxSteps);
      column.growth.capacity = node.Int("capacity", 0, 0, kMaxTableRows);
    } else if (node.Has("cross")) {
      node.CheckKeys({"cross", "buckets", "hash_key"});
      column.kind = ColumnKind::kCross;
      column.keys = node.At("cross").AsStrings();
      column.buckets = node.At("buckets").AsInt(1, kMaxTableRows);
      if (node.Has("hash_key")) column.hash_key = node.At("hash_key").AsSeed();
    } else if (node.Has("weighted")) {
      node.CheckKeys({"weighted", "weights"});
      column.kind = ColumnKind::kWeighted;
      column.input = node.At("weighted").AsString();
      column.weights = node.At("weights").AsString();
    } else if (node.Has("indicator")) {
      node.CheckKeys({"indicator"});
      column.kind = ColumnKind::kIndicator;
      column.input = node.At("indicator").AsString();
    } else if (node.Has("embedding")) {
      ParseEmbedding(node, &column);
    } else if (node.ok()) {
      FailKind(node);
    }
    return column;
  }

 private:
  static void FailKind(const YamlReader& node) {
    const std::vector<std::string> kinds = {
        "numeric",  "bucketized", "vocabulary", "identity",        "hash", "keys", "cross",
        "weighted", "indicator",  "embedding",  "sequence_numeric"};
    std::string near;
    node.ForEach([&](const std::string& key, const YamlReader&) {
      const std::string word = Nearest(key, kinds);
      if (near.empty() && !word.empty()) {
        near = StrCat("unknown column kind '", key, "' (did you mean '", word, "'?)");
      }
    });
    node.Fail(!near.empty() ? near
                            : "needs its kind: numeric, bucketized, vocabulary, identity, hash, "
                              "keys, cross, weighted, indicator, embedding or sequence_numeric");
  }

  static int ParseShape(const YamlReader& node) {
    return static_cast<int>(node.Int("shape", 1, 1, 65536));
  }

  static Pooling ParsePooling(const YamlReader& node) {
    const std::vector<std::string> known = {"sum", "mean", "sqrtn", "max", "last"};
    const std::string pooling = node.AsString();
    for (size_t i = 0; i < known.size(); ++i) {
      if (pooling == known[i]) return static_cast<Pooling>(i + 1);
    }
    if (node.ok()) node.Fail(StrCat("unknown pooling '", pooling, "'", DidYouMean(pooling, known)));
    return Pooling::kNone;
  }

  static void ParseScale(const YamlReader& node, ColumnSpec* column) {
    column->shape = ParseShape(node);
    column->log1p = node.Bool("log1p", false);
    column->mean = node.Number("mean", 0, -kLargest, kLargest);
    column->stddev = node.Number("stddev", 1, 1e-30, kLargest);
  }

  void ParseVocabulary(const YamlReader& node, ColumnSpec* column) {
    node.CheckKeys({"vocabulary", "words", "file", "oov_buckets", "default"});
    column->kind = ColumnKind::kVocabulary;
    column->input = node.At("vocabulary").AsString();
    column->oov_buckets = node.Int("oov_buckets", 0, 0, kMaxTableRows);
    column->default_id = node.Int("default", -1, -1, kMaxTableRows);
    if (node.ok() && node.Has("words") == node.Has("file")) {
      node.Fail("needs either 'words' (a list) or 'file' (one word a line)");
    }
    if (node.ok() && column->oov_buckets > 0 && column->default_id >= 0) {
      node.Fail("'oov_buckets' and 'default' exclude each other");
    }
    column->words = node.Strings("words");
    if (node.ok() && node.Has("file")) {
      column->words_file = io::JoinPath(folder_, node.At("file").AsString());
      auto words = ReadWords(files_, column->words_file);
      if (words.ok()) {
        column->words = *std::move(words);
      } else {
        node.Fail(StrCat("vocabulary file: ", ToStd(words.status().message())));
      }
    }
  }

  static void ParseEmbedding(const YamlReader& node, ColumnSpec* column) {
    node.CheckKeys({"embedding", "dimension", "combiner", "pooling", "shared", "max_norm"});
    column->kind = ColumnKind::kEmbedding;
    column->input = node.At("embedding").AsString();
    column->dimension = static_cast<int>(node.At("dimension").AsInt(1, 65536));
    const std::string combiner = node.String("combiner", "mean");
    if (combiner == "sum") {
      column->combiner = features::Combiner::kSum;
    } else if (combiner == "sqrtn") {
      column->combiner = features::Combiner::kSqrtN;
    } else if (combiner != "mean" && node.ok()) {
      const std::vector<std::string> known = {"mean", "sum", "sqrtn"};
      node.Fail(StrCat("unknown combiner '", combiner, "'", DidYouMean(combiner, known)));
    }
    if (node.ok() && node.Has("pooling")) {
      if (node.Has("combiner")) node.Fail("'combiner' and 'pooling' exclude each other");
      column->pooling = ParsePooling(node.At("pooling"));
    }
    column->shared = node.String("shared");
    column->max_norm = node.Number("max_norm", 0, 1e-30, kLargest);
  }

  io::FileSystem& files_;
  std::string folder_;
};

}  // namespace

features::FeatureSpec ParseFeatures(io::FileSystem& files, const YamlReader& root,
                                    const std::string& folder) {
  features::FeatureSpec spec;
  if (!root.ok()) return spec;
  root.At("inputs").ForEach([&](const std::string& key, const YamlReader& node) {
    spec.schema.fields.push_back(ParseInputField(key, node));
  });
  if (root.ok()) ParseLabelSpec(root.At("label"), &spec.label);
  spec.weight = root.String("weight");
  spec.key = root.String("key");
  ColumnParser columns(files, folder);
  if (root.ok() && root.Has("columns")) {
    root.At("columns").ForEach([&](const std::string& key, const YamlReader& node) {
      spec.columns.push_back(columns.Parse(key, node));
    });
  }
  return spec;
}

}  // namespace muster::model
