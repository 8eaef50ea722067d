#include "muster/formats/json_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "muster/base/json_depth.h"
#include "muster/base/utf8.h"

namespace muster::formats {
namespace {

constexpr int kMaxDepth = 32;  // the library prints and merges recursively

const Json kEmptyObject = Json::object();
const Json kEmptyList = Json::array();

}  // namespace

absl::StatusOr<Json> ParseJsonObject(std::string_view text, std::string_view where) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(StrCat(where, ": ", why));
  };
  if (!IsUtf8(text)) return refuse("is not text in UTF-8");
  if (FindDeeperJson(text, kMaxDepth) != text.npos)
    return refuse(StrCat("nests deeper than ", kMaxDepth));
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return refuse("is not JSON");
  if (!json.is_object()) return refuse("is not a JSON object");
  return json;
}

std::string PrintJson(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

JsonFields::JsonFields(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) Fail("must be an object");
}

const Json* JsonFields::Find(const char* name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::Has(const char* name) const { return Find(name) != nullptr; }

void JsonFields::Fail(std::string_view message) {
  Update(absl::InvalidArgumentError(StrCat(where_, ": ", message)));
}

void JsonFields::Update(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

std::string JsonFields::Text(const char* name, std::string fallback) {
  const Json* const value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  Fail(StrCat("\"", name, "\" must be a text"));
  return fallback;
}

int64_t JsonFields::Int(const char* name, int64_t fallback, int64_t low, int64_t high) {
  const Json* const value = Find(name);
  if (value == nullptr) return fallback;
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() ||
                     value->get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
  if (fits && value->get<int64_t>() >= low && value->get<int64_t>() <= high) {
    return value->get<int64_t>();
  }
  Fail(StrCat("\"", name, "\" must be a whole number from ", low, " to ", high));
  return fallback;
}

double JsonFields::Number(const char* name, double fallback) {
  const Json* const value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  Fail(StrCat("\"", name, "\" must be a number"));
  return fallback;
}

bool JsonFields::Bool(const char* name, bool fallback) {
  const Json* const value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Fail(StrCat("\"", name, "\" must be true or false"));
  return fallback;
}

std::vector<std::string> JsonFields::Texts(const char* name) {
  std::vector<std::string> texts;
  for (const Json& each : List(name)) {
    if (!each.is_string()) {
      Fail(StrCat("\"", name, "\" must be a list of texts"));
      return texts;
    }
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

const Json& JsonFields::Object(const char* name) {
  const Json* const value = Find(name);
  if (value == nullptr) return kEmptyObject;
  if (value->is_object()) return *value;
  Fail(StrCat("\"", name, "\" must be an object"));
  return kEmptyObject;
}

const Json& JsonFields::List(const char* name) {
  const Json* const value = Find(name);
  if (value == nullptr) return kEmptyList;
  if (value->is_array()) return *value;
  Fail(StrCat("\"", name, "\" must be a list"));
  return kEmptyList;
}

Json MergePatch(const Json& from, const Json& to) {
  Json patch = Json::object();
  for (const auto& [name, value] : from.items()) {
    if (!to.contains(name)) patch[name] = nullptr;
  }
  for (const auto& [name, value] : to.items()) {
    const auto old = from.find(name);
    if (old == from.end()) {
      patch[name] = value;
    } else if (old->is_object() && value.is_object()) {
      Json inner = MergePatch(*old, value);
      if (!inner.empty()) patch[name] = std::move(inner);
    } else if (*old != value) {
      patch[name] = value;
    }
  }
  return patch;
}

}  // namespace muster::formats
