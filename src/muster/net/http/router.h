// Finds a request's route by method and a pattern of segments, "/v1/jobs/{job}/tasks/{task}".
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::net {

struct RouteMatch {
  std::optional<size_t> route = {};  // the pattern's index in the list
  std::map<std::string, std::string> parameters = {};
  std::string allowed = {};  // without a route: the methods that this path has, "GET, POST"
};

// Immutable; any thread.
class HttpRouter {
 public:
  struct Pattern {
    std::string method = {};  // upper case
    std::string path = {};    // starts with '/'; a segment is text or {name}
  };
  // INVALID_ARGUMENT for a pattern that is not a path, names a parameter twice, or matches exactly
  // the same requests as an earlier one.
  static absl::StatusOr<HttpRouter> Create(const std::vector<Pattern>& patterns);

  // A text segment takes precedence over a parameter: "/jobs/all" before "/jobs/{job}". A parameter
  // is never empty.
  RouteMatch Find(std::string_view method, const std::vector<std::string>& segments) const;

 private:
  struct Segment {
    std::string text = {};
    bool is_parameter = false;
  };
  struct Route {
    std::string method = {};
    std::vector<Segment> segments = {};
  };
  static absl::StatusOr<Route> ParsePattern(const Pattern& pattern);
  static bool SameRequests(const Route& a, const Route& b);
  static bool Matches(const Route& route, const std::vector<std::string>& segments);
  static bool MoreExact(const Route& a, const Route& b);

  std::vector<Route> routes_;
};

}  // namespace muster::net
