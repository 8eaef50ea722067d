// Reads JSON that comes from a file or a peer: depth and types are checked before values are used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "nlohmann/json.hpp"

namespace muster::formats {

using Json = nlohmann::ordered_json;

// INVALID_ARGUMENT "WHERE: ..." if `text` is not a JSON object in UTF-8, or nests deeper than 32.
absl::StatusOr<Json> ParseJsonObject(std::string_view text, std::string_view where);

// Prints one line of JSON; bytes that are not UTF-8 become the replacement character.
std::string PrintJson(const Json& json);

// Reads the members of an object by type. An absent or null member gives the fallback. The first
// member that has another type or is out of range is kept as the status, INVALID_ARGUMENT "WHERE:
// "member" must be ...". One owner thread; the object must live as long as this one.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string where);

  std::string Text(const char* name, std::string fallback = "");
  int64_t Int(const char* name, int64_t fallback, int64_t low, int64_t high);
  double Number(const char* name, double fallback);  // finite
  bool Bool(const char* name, bool fallback);
  std::vector<std::string> Texts(const char* name);
  const Json& Object(const char* name);  // absent: empty
  const Json& List(const char* name);    // absent: empty
  bool Has(const char* name) const;

  void Fail(std::string_view message);
  void Update(const absl::Status& status);  // merges the status of a part; the first error is kept
  const absl::Status& status() const { return status_; }
  const std::string& where() const { return where_; }

 private:
  const Json* Find(const char* name) const;
  const Json& object_;
  const std::string where_;
  absl::Status status_;
};

// Returns the patch with which Json::merge_patch (RFC 7396) turns `from` into `to`; an empty object
// if they are equal. No member of either may be null.
Json MergePatch(const Json& from, const Json& to);

}  // namespace muster::formats
