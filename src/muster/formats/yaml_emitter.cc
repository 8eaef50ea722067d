#include "muster/formats/yaml_emitter.h"

namespace muster::formats {

void EmitText(YAML::Emitter& out, const std::string& text) { out << YAML::DoubleQuoted << text; }

void EmitKey(YAML::Emitter& out, const std::string& key) {
  out << YAML::Key;
  EmitText(out, key);
  out << YAML::Value;
}

void EmitText(YAML::Emitter& out, const std::string& key, const std::string& text) {
  out << YAML::Key << key << YAML::Value;
  EmitText(out, text);
}

void EmitTexts(YAML::Emitter& out, const std::string& key, const std::vector<std::string>& texts) {
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const std::string& text : texts) EmitText(out, text);
  out << YAML::EndSeq;
}

void EmitFlag(YAML::Emitter& out, const std::string& key, bool value) {
  if (value) out << YAML::Key << key << YAML::Value << "true";
}

void BeginFlowMap(YAML::Emitter& out, std::string_view key) {
  out << YAML::Key << std::string(key) << YAML::Value << YAML::Flow << YAML::BeginMap;
}

}  // namespace muster::formats
