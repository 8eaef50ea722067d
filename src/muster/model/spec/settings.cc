#include "muster/model/spec/settings.h"

#include <yaml-cpp/yaml.h>

#include <charconv>

#include "absl/strings/str_join.h"

namespace muster::model {
namespace {

formats::HparamValue ScalarValue(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // in quotes
  if (text == "true" || text == "false") return text == "true";
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return text;
}

std::string ListText(const YAML::Node& list) {
  std::vector<std::string> parts;
  for (const YAML::Node& part : list) {
    parts.push_back(part.IsScalar() ? part.Scalar() : YAML::Dump(part));
  }
  return StrCat("[", absl::StrJoin(parts, ", "), "]");
}

void AddSettings(const YAML::Node& node, const std::string& name,
                 std::vector<formats::Hparam>* settings) {
  if (node.IsScalar()) {
    settings->push_back({name, ScalarValue(node)});
  } else if (node.IsSequence()) {
    settings->push_back({name, ListText(node)});
  } else if (node.IsMap()) {
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      if (key == "columns") continue;
      // {KIND: {...}} becomes the kind and the settings below it.
      if (node.size() == 1 && entry.second.IsMap()) {
        settings->push_back({name, key});
        AddSettings(entry.second, name, settings);
      } else {
        AddSettings(entry.second, name.empty() ? key : StrCat(name, "/", key), settings);
      }
    }
  }
}

}  // namespace

std::vector<formats::Hparam> Settings(const ModelSpec& spec) {
  const YAML::Node root = YAML::Load(PrintModelSpec(spec));
  std::vector<formats::Hparam> settings;
  AddSettings(root["model"], "", &settings);
  for (const char* key : {"head", "train"}) AddSettings(root[key], key, &settings);
  return settings;
}

}  // namespace muster::model
