#include "muster/model/spec/format_parser.h"

#include <string>

#include "muster/formats/yaml_emitter.h"

namespace muster::model {
namespace {

using formats::DataFormat;
using formats::EmitText;
using formats::EmitTexts;
using formats::YamlReader;

template <typename Value>
void ReadWord(const YamlReader& node, std::string_view key,
              absl::StatusOr<Value> (*parse)(std::string_view), std::optional<Value>* to) {
  if (!node.Has(key)) return;
  const YamlReader child = node.At(key);
  const absl::StatusOr<Value> value = parse(child.AsString());
  if (value.ok()) {
    *to = *value;
  } else {
    child.Fail(std::string(value.status().message()));
  }
}

void ReadBool(const YamlReader& node, std::string_view key, std::optional<bool>* to) {
  if (node.Has(key)) *to = node.Bool(key, false);
}

}  // namespace

DataFormat ParseDataFormat(const YamlReader& node) {
  node.CheckKeys(
      {"type", "delimiter", "header", "columns", "trim", "quote", "missing", "encoding_errors"});
  DataFormat format;
  ReadWord(node, "type", &formats::ParseFileFormat, &format.type);
  ReadWord(node, "delimiter", &formats::ParseDelimiter, &format.delimiter);
  ReadBool(node, "header", &format.header);
  format.columns = node.Strings("columns");
  ReadBool(node, "trim", &format.trim);
  ReadWord(node, "quote", &formats::ParseQuote, &format.quote);
  if (node.Has("missing")) format.missing = node.Strings("missing");
  ReadWord(node, "encoding_errors", &formats::ParseEncodingErrors, &format.encoding_errors);
  const absl::Status sound = formats::CheckDataFormat(format);
  if (node.ok() && !sound.ok()) node.Fail(std::string(sound.message()));
  return format;
}

void EmitDataFormat(YAML::Emitter& out, const DataFormat& format) {
  if (format == DataFormat()) return;
  out << YAML::Key << "format" << YAML::Value << YAML::Flow << YAML::BeginMap;
  const auto flag = [&out](const std::string& key, const std::optional<bool>& value) {
    if (value) out << YAML::Key << key << YAML::Value << (*value ? "true" : "false");
  };
  if (format.type) EmitText(out, "type", std::string(formats::FileFormatName(*format.type)));
  if (format.delimiter) EmitText(out, "delimiter", formats::PrintDelimiter(*format.delimiter));
  flag("header", format.header);
  if (!format.columns.empty()) EmitTexts(out, "columns", format.columns);
  flag("trim", format.trim);
  if (format.quote) EmitText(out, "quote", formats::PrintQuote(*format.quote));
  if (format.missing) EmitTexts(out, "missing", *format.missing);
  if (format.encoding_errors) {
    EmitText(out, "encoding_errors",
             std::string(formats::EncodingErrorsName(*format.encoding_errors)));
  }
  out << YAML::EndMap;
}

}  // namespace muster::model
