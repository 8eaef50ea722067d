#include "muster/launch/kubernetes/api/kube_object.h"

#include <charconv>

#include "muster/base/json_depth.h"
#include "muster/base/utf8.h"

namespace muster::launch::kubernetes {
namespace {

constexpr int kMaxDepth = 10'000;  // of an API server's own decoder
const Json kNothing;

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

absl::StatusOr<Json> ParseKubeObject(std::string_view text, std::string_view where) {
  if (!IsUtf8(text) || FindDeeperJson(text, kMaxDepth) != text.npos) {
    return absl::InvalidArgumentError(
        StrCat(where, ": is not text in UTF-8, or nests deeper than ", kMaxDepth));
  }
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return absl::InvalidArgumentError(StrCat(where, ": is not a JSON object"));
  }
  return json;
}

const Json& Child(const Json& object, std::string_view name) {
  if (!object.is_object()) return kNothing;
  const auto found = object.find(std::string(name));
  return found == object.end() ? kNothing : *found;
}

std::string TextOf(const Json& object, std::string_view name) {
  const Json& child = Child(object, name);
  return child.is_string() ? child.get<std::string>() : std::string();
}

int64_t NumberOf(const Json& object, std::string_view name, int64_t fallback) {
  const Json& child = Child(object, name);
  return child.is_number_integer() ? child.get<int64_t>() : fallback;
}

std::string NameOf(const Json& object) { return TextOf(Child(object, "metadata"), "name"); }

std::string NamespaceOf(const Json& object) {
  return TextOf(Child(object, "metadata"), "namespace");
}

std::string UidOf(const Json& object) { return TextOf(Child(object, "metadata"), "uid"); }

int64_t VersionOf(const Json& object) {
  const std::string text = TextOf(Child(object, "metadata"), "resourceVersion");
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() ? version : 0;
}

}  // namespace muster::launch::kubernetes
