#include "muster/launch/kubernetes/api/kube_object.h"

#include <algorithm>
#include <charconv>

#include "muster/formats/json_tree.h"

namespace muster::launch::kubernetes {
namespace {

constexpr size_t kMaxDepth = 10'000;  // of an API server's own decoder
const Json kNothing;

// The end of the text, object or list that begins at `begin`; npos if it has none.
size_t SkipValue(std::string_view text, size_t begin) {
  int depth = 0;
  for (size_t at = begin; at < text.size(); ++at) {
    switch (text[at]) {
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) return at + 1;
        break;
      case '"':
        for (++at; at < text.size() && text[at] != '"'; ++at) {
          if (text[at] == '\\') ++at;
        }
        if (depth == 0) return at < text.size() ? at + 1 : text.npos;
        break;
      default:
        break;
    }
  }
  return text.npos;
}

}  // namespace

std::string GetTarget(const KubeKind& kind, std::string_view name_space, std::string_view name,
                      std::string_view subresource) {
  const bool is_core = kind.group_version.find('/') == std::string_view::npos;
  std::string target = StrCat(is_core ? "/api/" : "/apis/", kind.group_version);
  if (!name_space.empty()) target += StrCat("/namespaces/", name_space);
  target += StrCat("/", kind.plural);
  if (!name.empty()) target += StrCat("/", name);
  if (!subresource.empty()) target += StrCat("/", subresource);
  return target;
}

std::string_view FindMember(std::string_view object, std::string_view name) {
  size_t at = 0;  // of the '{' or ',' before a member
  while (at + 1 < object.size() && object[at + 1] == '"') {
    const size_t colon = SkipValue(object, at + 1);
    if (colon == object.npos || colon + 1 >= object.size() || object[colon] != ':') break;
    const bool is_found = object.substr(at + 2, colon - at - 3) == name;
    const size_t value = colon + 1;
    const bool is_long = object[value] == '"' || object[value] == '{' || object[value] == '[';
    const size_t end = is_long ? SkipValue(object, value) : object.find_first_of(",}", value);
    if (end == object.npos) break;
    if (is_found) return object.substr(value, end - value);
    at = end;
    if (at >= object.size() || object[at] != ',') break;
  }
  return {};
}

std::string LeaveOut(std::string_view text, Names names) {
  std::string rest;
  size_t done = 0;  // up to here the text is in `rest` or left out
  for (size_t begin = 0; begin < text.size();) {
    // A quote inside of a text has a backslash before it, so `"NAME":{` is a member's beginning.
    begin = text.find("\":", begin);
    if (begin == text.npos || begin + 2 >= text.size()) break;
    const size_t value = begin + 2;
    const bool is_named = (text[value] == '{' || text[value] == '[') &&
                          std::any_of(names.begin(), names.end(), [&](std::string_view name) {
                            return text.substr(done, begin - done).ends_with(name) &&
                                   begin > done + name.size() &&
                                   text[begin - name.size() - 1] == '"';
                          });
    if (!is_named) {
      begin = value;
      continue;
    }
    const size_t end = SkipValue(text, value);
    if (end == text.npos) break;
    // An empty value of the same kind keeps what is before and after it as it is.
    rest += text.substr(done, value - done);
    rest += text[value] == '{' ? "{}" : "[]";
    begin = done = end;
  }
  rest += text.substr(done);
  return rest;
}

absl::StatusOr<Json> ParseKubeObject(std::string_view whole, std::string_view where,
                                     Names left_out) {
  auto json = formats::ParseJsonTree(LeaveOut(whole, left_out), kMaxDepth);
  if (json && json->is_object()) return *std::move(json);
  return absl::InvalidArgumentError(
      StrCat(where, ": is not a JSON object in UTF-8, or nests deeper than ", kMaxDepth));
}

std::string_view WithoutFullStop(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (text.ends_with('.') && !text.ends_with("..")) text.remove_suffix(1);
  return text;
}

const Json& Child(const Json& object, std::string_view name) {
  if (!object.is_object()) return kNothing;
  const auto found = object.find(std::string(name));
  return found == object.end() ? kNothing : *found;
}

std::string GetText(const Json& object, std::string_view name) {
  const Json& child = Child(object, name);
  return child.is_string() ? child.get<std::string>() : std::string();
}

int64_t GetNumber(const Json& object, std::string_view name, int64_t fallback) {
  const Json& child = Child(object, name);
  return child.is_number_integer() ? child.get<int64_t>() : fallback;
}

std::string GetName(const Json& object) { return GetText(Child(object, "metadata"), "name"); }

std::string GetNamespace(const Json& object) {
  return GetText(Child(object, "metadata"), "namespace");
}

std::string GetUid(const Json& object) { return GetText(Child(object, "metadata"), "uid"); }

int64_t GetVersion(const Json& object) {
  return ParseVersion(GetText(Child(object, "metadata"), "resourceVersion"));
}

int64_t ParseVersion(std::string_view text) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() ? version : 0;
}

}  // namespace muster::launch::kubernetes
