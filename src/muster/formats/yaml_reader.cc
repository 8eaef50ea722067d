#include "muster/formats/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/base/nearest.h"
#include "muster/base/utf8.h"

namespace muster::formats {
namespace {

constexpr int kMaxYamlDepth = 32;
constexpr size_t kMaxDocuments = 100;

// Whether brackets or indentation nest too deep; checked before yaml-cpp recurses into them.
bool NestsTooDeep(std::string_view text) {
  int brackets = 0;
  std::vector<size_t> indents;
  bool line_start = true;
  size_t indent = 0;
  for (const char c : text) {
    if (c == '\n') {
      line_start = true;
      indent = 0;
      continue;
    }
    // "- - - x" nests one level for each dash.
    if (line_start && (c == ' ' || c == '-' || c == '?' || c == '\t')) {
      ++indent;
      if (c != ' ') {
        if (indents.empty() || indents.back() < indent) indents.push_back(indent);
      }
    } else if (line_start) {
      line_start = false;
      while (!indents.empty() && indents.back() > indent) indents.pop_back();
      if (indents.empty() || indents.back() < indent) indents.push_back(indent);
    }
    if (c == '[' || c == '{') ++brackets;
    if (c == ']' || c == '}') brackets = std::max(0, brackets - 1);
    if (brackets > kMaxYamlDepth || indents.size() > kMaxYamlDepth) return true;
  }
  return false;
}

// Returns the documents of a stream that contain more than comments and directives, at most one
// more than is allowed. Each is preceded by as many empty lines as there were lines before it, so
// that line numbers stay right. (YAML::LoadAll does not end on a stray bracket.)
std::vector<std::string> SplitDocuments(std::string_view text) {
  std::vector<std::string> documents;
  std::string part;
  size_t line_number = 0;
  bool has_content = false;
  const auto end_part = [&] {
    if (has_content) documents.push_back(std::move(part));
    part.assign(line_number, '\n');
    has_content = false;
  };
  while (!text.empty() && documents.size() <= kMaxDocuments) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(length);
    if (line.starts_with("---") && (line.size() == 3 || std::strchr(" \t\r\n", line[3])))
      end_part();
    const size_t first = line.find_first_not_of(" \t\r\n");
    const bool is_marker =
        line.starts_with("---") && line.find_first_not_of("- \t\r\n") == line.npos;
    has_content |= first != line.npos && line[first] != '#' && line[0] != '%' && !is_marker;
    part += line;
    ++line_number;
  }
  end_part();
  return documents;
}

// The number of the first line, up to `last`, that a tab indents; 0 if there is none.
int FindTabLine(std::string_view text, int last) {
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    if (++number > last) return 0;
    const size_t first = line.find_first_not_of(' ');
    if (first != line.npos && line[first] == '\t') return number;
  }
  return 0;
}

template <typename Number>
bool ParseWhole(std::string_view text, Number* value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

YamlReader& YamlReader::operator=(const YamlReader& other) {
  if (this == &other) return *this;
  document_ = other.document_;
  node_.reset(other.node_);
  path_ = other.path_;
  return *this;
}

absl::StatusOr<std::vector<YamlReader>> YamlReader::ParseAll(std::string_view text,
                                                             const std::string& name) {
  std::vector<YamlReader> documents;
  for (const std::string& part : SplitDocuments(text)) {
    MUSTER_ASSIGN_OR_RETURN(YamlReader document, Parse(part, name));
    documents.push_back(std::move(document));
  }
  if (documents.empty()) return absl::InvalidArgumentError(StrCat(name, ": is empty"));
  if (documents.size() > kMaxDocuments) {
    return absl::InvalidArgumentError(
        StrCat(name, ": holds more than ", kMaxDocuments, " YAML documents"));
  }
  return documents;
}

absl::StatusOr<YamlReader> YamlReader::Parse(std::string_view text, const std::string& name) {
  auto document = std::make_shared<Document>();
  document->name = name;
  // yaml-cpp would take other bytes for UTF-16 or replace them.
  if (!IsUtf8(text) || text.find('\0') != text.npos) {
    return absl::InvalidArgumentError(StrCat(name, ": is not UTF-8 text"));
  }
  if (NestsTooDeep(text)) {
    return absl::InvalidArgumentError(
        StrCat(name, ": nests deeper than ", kMaxYamlDepth, " levels"));
  }
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    return YamlReader(std::move(document), root, "");
  } catch (const YAML::Exception& error) {
    const int line = error.mark.line + 1;
    if (const int tab = FindTabLine(text, line); tab > 0) {
      return absl::InvalidArgumentError(
          StrCat(name, ":", tab, ": not YAML: a tab indents this line; write spaces"));
    }
    return absl::InvalidArgumentError(StrCat(name, ":", line, ": not YAML: ", error.msg));
  }
}

absl::Status YamlReader::Set(std::string_view setting) {
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(StrCat("'", setting, "' ", what));
  };
  const size_t equals = setting.find('=');
  const std::vector<std::string> keys = absl::StrSplit(std::string(setting.substr(0, equals)), '.');
  const bool has_empty_key = std::find(keys.begin(), keys.end(), "") != keys.end();
  if (equals == setting.npos || has_empty_key) {
    return wrong("is not of the form PATH=VALUE, such as train.batch_size=64");
  }
  const auto value = Parse(setting.substr(equals + 1), "the value");
  if (!value.ok()) return wrong(StrCat("cannot be set: ", ToStd(value.status().message())));
  YAML::Node node;
  node.reset(node_);
  for (size_t i = 0; i + 1 < keys.size(); ++i) {
    const YAML::Node child = node[keys[i]];
    if (child.IsDefined() && !child.IsMap()) {
      const std::string path = absl::StrJoin(keys.begin(), keys.begin() + i + 1, ".");
      return wrong(StrCat("cannot be set: ", path, " is not a map in ", document_->name,
                          "; set it as a whole"));
    }
    if (!child.IsDefined()) node[keys[i]] = YAML::Node(YAML::NodeType::Map);
    node.reset(node[keys[i]]);
  }
  node[keys.back()] = value->node_;
  document_->settings.emplace_back(absl::StrJoin(keys, "."), setting);
  return absl::OkStatus();
}

// Returns "f.yaml:12", or the setting that the value came from.
std::string YamlReader::Where() const {
  for (const auto& [path, setting] : document_->settings) {
    const bool is_below = path_.starts_with(path) &&
                          (path_.size() == path.size() || std::strchr(".[", path_[path.size()]));
    if (is_below) return StrCat(document_->name, " with ", setting);
  }
  const int line = node_.Mark().line;
  return line >= 0 ? StrCat(document_->name, ":", line + 1) : document_->name;
}

void YamlReader::Fail(std::string_view message) const {
  if (!document_->status.ok()) return;
  document_->status = absl::InvalidArgumentError(
      StrCat(Where(), ": ", path_.empty() ? std::string() : StrCat(path_, ": "), message));
}

void YamlReader::ForEach(
    const std::function<void(const std::string&, const YamlReader&)>& visit) const {
  if (!ok()) return;
  if (!node_.IsMap()) return Fail("must be a map of 'key: value' entries");
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) return Fail("has a key that is not a word");
    const std::string& key = entry.first.Scalar();
    const YamlReader child(document_, entry.second, path_.empty() ? key : StrCat(path_, ".", key));
    if (!seen.insert(key).second) {
      return YamlReader(document_, entry.first, child.path_).Fail("is given twice");
    }
    visit(key, child);
    if (!ok()) return;
  }
}

void YamlReader::CheckKeys(std::span<const std::string_view> known) const {
  ForEach([](const std::string&, const YamlReader&) {});
  if (!ok()) return;
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::vector<std::string> words(known.begin(), known.end());
    // the error names the line of the key, as the value may begin later
    const YamlReader here(document_, entry.first, path_);
    here.Fail(StrCat("unknown key '", key, "'", DidYouMean(key, words)));
  }
}

bool YamlReader::Has(std::string_view key) const {
  return ok() && node_.IsMap() && node_[std::string(key)].IsDefined();
}

YamlReader YamlReader::At(std::string_view key) const {
  if (ok() && !node_.IsMap()) Fail("must be a map of 'key: value' entries");
  if (ok() && !Has(key)) Fail(StrCat("needs '", key, "'"));
  if (!ok()) return YamlReader(document_, YAML::Node(), path_);
  return YamlReader(document_, node_[std::string(key)],
                    path_.empty() ? std::string(key) : StrCat(path_, ".", key));
}

std::vector<YamlReader> YamlReader::Items() const {
  std::vector<YamlReader> items;
  if (!ok()) return items;
  if (!node_.IsSequence()) {
    Fail("must be a list");
    return items;
  }
  for (const auto& item : node_) {
    items.push_back(YamlReader(document_, item, StrCat(path_, "[", items.size(), "]")));
  }
  return items;
}

std::string YamlReader::Scalar(std::string_view expected) const {
  if (!ok()) return "";
  if (!node_.IsScalar()) {
    Fail(StrCat("must be ", expected));
    return "";
  }
  return node_.Scalar();
}

std::string YamlReader::AsString() const { return Scalar("a text"); }

int64_t YamlReader::AsInt(int64_t low, int64_t high) const {
  const std::string text = Scalar("a whole number");
  int64_t value = low;
  if (!ok()) return low;
  if (!ParseWhole(text, &value)) {
    Fail(StrCat("'", text, "' is not a whole number"));
  } else if (value < low || value > high) {
    Fail(StrCat(text, " is not between ", low, " and ", high));
  } else {
    return value;
  }
  return low;
}

uint64_t YamlReader::AsSeed() const {
  const std::string text = Scalar("a whole number");
  uint64_t value = 0;
  if (ok() && !ParseWhole(text, &value)) Fail(StrCat("'", text, "' is not a whole number >= 0"));
  return value;
}

double YamlReader::AsNumber(double low, double high) const {
  const std::string text = Scalar("a number");
  if (!ok()) return low;
  double value = 0;
  if (!ParseWhole(text, &value) || !std::isfinite(value)) {
    Fail(StrCat("'", text, "' is not a number"));
  } else if (value < low || value > high) {
    Fail(StrCat(text, " is not between ", low, " and ", high));
  } else {
    return value;
  }
  return low;
}

bool YamlReader::AsBool() const {
  const std::string text = Scalar("true or false");
  if (ok() && text != "true" && text != "false") Fail(StrCat("'", text, "' is not true or false"));
  return text == "true";
}

std::vector<std::string> YamlReader::AsStrings() const {
  if (!ok()) return {};
  if (node_.IsScalar()) return {node_.Scalar()};
  std::vector<std::string> values;
  if (!node_.IsSequence()) {
    Fail("must be a list");
    return values;
  }
  for (const auto& item : node_) {
    if (!item.IsScalar()) {
      YamlReader(document_, item, path_).Fail("must be a list of plain values");
      return {};
    }
    values.push_back(item.Scalar());
  }
  return values;
}

std::vector<float> YamlReader::AsFloats() const {
  std::vector<float> values;
  for (const std::string& text : AsStrings()) {
    float value = 0;
    if (!ParseWhole(std::string_view(text), &value) || !std::isfinite(value)) {
      Fail(StrCat("'", text, "' is not a number"));
      return {};
    }
    values.push_back(value);
  }
  return values;
}

std::string YamlReader::String(std::string_view key, std::string fallback) const {
  return Has(key) ? At(key).AsString() : std::move(fallback);
}

int64_t YamlReader::Int(std::string_view key, int64_t fallback, int64_t low, int64_t high) const {
  return Has(key) ? At(key).AsInt(low, high) : fallback;
}

double YamlReader::Number(std::string_view key, double fallback, double low, double high) const {
  return Has(key) ? At(key).AsNumber(low, high) : fallback;
}

bool YamlReader::Bool(std::string_view key, bool fallback) const {
  return Has(key) ? At(key).AsBool() : fallback;
}

std::vector<std::string> YamlReader::Strings(std::string_view key) const {
  return Has(key) ? At(key).AsStrings() : std::vector<std::string>();
}

}  // namespace muster::formats
