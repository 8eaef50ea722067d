#include "muster/formats/yaml_json.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace muster::formats {
namespace {

constexpr int kMaxJsonValues = 100'000;
constexpr int kMaxJsonDepth = 64;
// YAML 1.2, 7.4.2: a key that is not marked by '?' has at most 1024 characters, quotes included.
constexpr size_t kMaxPrintedKey = 1024;

template <typename Number>
bool IsWhole(std::string_view text, Number* value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// Reads a plain scalar by YAML's core schema.
Json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const bool is_number_like = text.find_first_of("0123456789") != std::string::npos;
  if (!is_number_like) return text;
  const std::string_view digits = text[0] == '+' ? std::string_view(text).substr(1) : text;
  if (int64_t whole = 0; IsWhole(digits, &whole)) return whole;
  if (uint64_t whole = 0; IsWhole(digits, &whole)) return whole;
  if (double number = 0; IsWhole(digits, &number) && std::isfinite(number)) return number;
  return text;
}

class Converter {
 public:
  explicit Converter(const YamlReader& reader) : reader_(reader) {}

  Json Convert(const YAML::Node& node, int depth) {
    if (!reader_.ok()) return nullptr;
    if (++values_ > kMaxJsonValues)
      return Fail("has more than 100000 values with its aliases expanded");
    if (depth > kMaxJsonDepth) return Fail("nests deeper than 64 levels");
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str"
                   ? Json(node.Scalar())
                   : PlainScalar(node.Scalar());
      case YAML::NodeType::Sequence: {
        Json list = Json::array();
        for (const auto& item : node) list.push_back(Convert(item, depth + 1));
        return list;
      }
      case YAML::NodeType::Map: {
        Json map = Json::object();
        for (const auto& entry : node) {
          if (!entry.first.IsScalar()) return Fail("has a key that is not a word");
          const std::string& key = entry.first.Scalar();
          if (Json(key).dump().size() > kMaxPrintedKey) {
            return Fail(StrCat("has a key of ", key.size(), " bytes, which YAML cannot print"));
          }
          if (map.contains(key)) return Fail(StrCat("has the key '", key, "' twice"));
          map[key] = Convert(entry.second, depth + 1);
        }
        return map;
      }
      default:
        return nullptr;
    }
  }

 private:
  Json Fail(const std::string& message) {
    reader_.Fail(message);
    return nullptr;
  }

  const YamlReader& reader_;
  int values_ = 0;
};

bool NeedsQuotes(const std::string& text) {
  if (!PlainScalar(text).is_string()) return true;
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return true;
  if (text.find_first_of("\n\r\t\"\\") != std::string::npos) return true;
  if (std::string_view("-?:,[]{}#&*!|>'%@`=").find(text.front()) != std::string_view::npos) {
    return true;
  }
  // Readers of YAML 1.1, such as Kubernetes, take these for booleans.
  for (const char* word : {"y", "n", "yes", "no", "on", "off", "Y", "N", "Yes", "No", "On", "Off",
                           "YES", "NO", "ON", "OFF"}) {
    if (text == word) return true;
  }
  return text.find(": ") != std::string::npos || text.find(" #") != std::string::npos;
}

std::string ScalarText(const Json& value) {
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  // A JSON text is a double-quoted YAML scalar; bytes that are not UTF-8 become the replacement
  // character.
  return NeedsQuotes(text) ? value.dump(-1, ' ', false, Json::error_handler_t::replace) : text;
}

void Print(const Json& value, int indent, std::string* out);

// Prints `value` after "key:" or "-".
void PrintChild(const Json& value, int indent, std::string* out) {
  if (!value.is_structured()) {
    *out += StrCat(" ", ScalarText(value), "\n");
  } else if (value.empty()) {
    *out += value.is_array() ? " []\n" : " {}\n";
  } else {
    *out += '\n';
    Print(value, indent, out);
  }
}

void Print(const Json& value, int indent, std::string* out) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  if (value.is_array()) {
    for (const Json& item : value) {
      *out += margin + "-";
      if (item.is_structured() && !item.empty()) {
        // For "- key: value": the first line of the item follows the dash.
        std::string text;
        Print(item, indent + 2, &text);
        *out += " " + text.substr(static_cast<size_t>(indent) + 2);
      } else {
        PrintChild(item, indent + 2, out);
      }
    }
    return;
  }
  for (const auto& [key, child] : value.items()) {
    *out += StrCat(margin, ScalarText(Json(key)), ":");
    PrintChild(child, child.is_array() ? indent : indent + 2, out);
  }
}

}  // namespace

Json YamlToJson(const YamlReader& reader) { return Converter(reader).Convert(reader.node(), 0); }

std::string JsonToYaml(const Json& value) {
  if (!value.is_structured() || value.empty()) {
    return value.is_structured() ? (value.is_array() ? "[]\n" : "{}\n") : ScalarText(value) + "\n";
  }
  std::string out;
  Print(value, 0, &out);
  return out;
}

}  // namespace muster::formats
