#include "muster/net/http/router.h"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::net {

absl::StatusOr<HttpRouter::Route> HttpRouter::ParsePattern(const Pattern& pattern) {
  const std::string what = StrCat("route ", pattern.method, " ", pattern.path);
  if (pattern.method.empty() || pattern.path.empty() || pattern.path.front() != '/') {
    return absl::InvalidArgumentError(
        StrCat(what, ": a route has a method and a path that starts with /"));
  }
  Route route = {.method = pattern.method};
  std::set<std::string> names;
  std::string_view rest = std::string_view(pattern.path).substr(1);
  while (!rest.empty()) {
    std::string_view text = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    const bool is_parameter = text.size() > 2 && text.front() == '{' && text.back() == '}';
    if (is_parameter) text = text.substr(1, text.size() - 2);
    if (text.empty() || text.find_first_of("{}") != std::string_view::npos) {
      return absl::InvalidArgumentError(StrCat(what, ": a segment is text or {name}"));
    }
    if (is_parameter && !names.emplace(text).second) {
      return absl::InvalidArgumentError(StrCat(what, ": {", text, "} is there twice"));
    }
    route.segments.push_back({.text = std::string(text), .is_parameter = is_parameter});
  }
  return route;
}

bool HttpRouter::SameRequests(const Route& a, const Route& b) {
  return a.method == b.method &&
         std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                    [](const Segment& x, const Segment& y) {
                      return x.is_parameter == y.is_parameter &&
                             (x.is_parameter || x.text == y.text);
                    });
}

bool HttpRouter::Matches(const Route& route, const std::vector<std::string>& segments) {
  return std::equal(route.segments.begin(), route.segments.end(), segments.begin(), segments.end(),
                    [](const Segment& pattern, const std::string& segment) {
                      return pattern.is_parameter ? !segment.empty() : pattern.text == segment;
                    });
}

// Of two routes that match the same path the first difference between them decides.
bool HttpRouter::MoreExact(const Route& a, const Route& b) {
  for (size_t i = 0; i < a.segments.size(); ++i) {
    if (a.segments[i].is_parameter != b.segments[i].is_parameter) return b.segments[i].is_parameter;
  }
  return false;
}

absl::StatusOr<HttpRouter> HttpRouter::Create(const std::vector<Pattern>& patterns) {
  HttpRouter router;
  for (const Pattern& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(Route route, ParsePattern(pattern));
    for (const Route& earlier : router.routes_) {
      if (SameRequests(earlier, route)) {
        return absl::InvalidArgumentError(StrCat("route ", pattern.method, " ", pattern.path,
                                                 ": an earlier one takes the same requests"));
      }
    }
    router.routes_.push_back(std::move(route));
  }
  return router;
}

RouteMatch HttpRouter::Find(std::string_view method,
                            const std::vector<std::string>& segments) const {
  RouteMatch match;
  std::set<std::string> allowed;
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (!Matches(routes_[i], segments)) continue;
    if (routes_[i].method != method) {
      allowed.insert(routes_[i].method);
    } else if (!match.route || MoreExact(routes_[i], routes_[*match.route])) {
      match.route = i;
    }
  }
  if (!match.route) {
    for (const std::string& other : allowed) {
      match.allowed += (match.allowed.empty() ? "" : ", ") + other;
    }
    return match;
  }
  const std::vector<Segment>& pattern = routes_[*match.route].segments;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i].is_parameter) match.parameters[pattern[i].text] = segments[i];
  }
  return match;
}

}  // namespace muster::net
