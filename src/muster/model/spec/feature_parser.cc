#include "muster/model/spec/feature_parser.h"

#include <limits>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/features/column_type.h"
#include "muster/features/measure.h"

namespace muster::model {
namespace {

using features::ColumnSpec;
using formats::Field;
using formats::ValueType;

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

// date: true, or the order of dates such as 11/24/2026.
void ParseDateSetting(const YamlReader& node, Field* field) {
  if (!node.Has("date")) return;
  const YamlReader date = node.At("date");
  const std::string text = date.AsString();
  const auto order = formats::FindDateOrder(text);
  field->date_order = order.value_or(formats::DateOrder::kUnknown);
  field->date = order || text == "true";
  if (date.ok() && !field->date && text != "false") {
    date.Fail("must be true or false or, for dates such as 11/24/2026, month_first or day_first");
  }
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
    ParseDateSetting(node, &field);
    if (node.ok() && field.date && field.type != ValueType::kInt) node.Fail("date is for type int");
    field.missing = node.Strings("missing");
    if (node.Has("default")) {
      if (field.list) node.Fail("a list cannot have a default: without a value it is empty");
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
    if (!label->words.empty()) node.Fail("give either 'words' or 'ids', not both");
    label->form = features::LabelSpec::Form::kSet;
  }
}

ColumnSpec ParseColumn(const std::string& name, const YamlReader& node,
                       const features::ColumnFiles& files) {
  ColumnSpec column;
  column.name = name;
  std::vector<std::string> known;
  for (const features::ColumnType* const type : features::ColumnTypes()) {
    known.emplace_back(type->name());
    if (!node.Has(type->name())) continue;
    column.kind = type->kind();
    type->Parse(node, files, &column);
    return column;
  }
  if (!node.ok()) return column;
  std::string near;
  node.ForEach([&](const std::string& key, const YamlReader&) {
    const std::string word = Nearest(key, known);
    if (near.empty() && !word.empty()) {
      near = StrCat("unknown column kind '", key, "' (did you mean '", word, "'?)");
    }
  });
  const std::string last = known.back();
  known.pop_back();
  node.Fail(!near.empty() ? near
                          : StrCat("needs a kind: ", absl::StrJoin(known, ", "), " or ", last));
  return column;
}

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
  const features::ColumnFiles column_files{files, folder};
  if (root.ok() && root.Has("columns")) {
    root.At("columns").ForEach([&](const std::string& key, const YamlReader& node) {
      const ColumnSpec& column = spec.columns.emplace_back(ParseColumn(key, node, column_files));
      const int input = spec.schema.Find(column.input);
      if (column.impute == features::Impute::kNone || input < 0 || !node.ok()) return;
      const Field& field = spec.schema.fields[static_cast<size_t>(input)];
      if (field.has_default && field.type != ValueType::kString) {
        node.Fail(StrCat("impute: the input '", column.input, "' has a default, which replaces ",
                         "a missing value; leave one of the two out"));
      }
    });
    features::ApplyImputes(&spec);
  }
  return spec;
}

}  // namespace muster::model
