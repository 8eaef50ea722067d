// Requests, answers and errors of the control plane as plain data, without sockets.
//
// An error is sent as {"error": {"code": "NOT_FOUND", "message": "..."}} with the matching HTTP
// status, so that a client gets the absl::Status which the handler returned.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "nlohmann/json.hpp"

namespace muster::net {

// Objects have sorted keys: the order-preserving variant looks keys up in linear time, which a
// stranger could make expensive.
using Json = nlohmann::json;

struct HttpRequest {
  std::string method = {};                             // "GET"
  std::string path = {};                               // as sent, without the query
  std::map<std::string, std::string> parameters = {};  // values of the route's {name}s, decoded
  std::map<std::string, std::string> query = {};       // decoded; the last of two equal keys
  Json body = {};                                      // null if there is none
  std::string peer = {};                               // "127.0.0.1:40312"
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  // More header fields; without line breaks.
  std::map<std::string, std::string> fields = {};
};

// The header and body that are sent to the peer.
std::string SerializeResponse(const HttpResponse& response, bool keep_alive);

HttpResponse JsonResponse(const Json& body, int status = 200);
HttpResponse TextResponse(std::string text, int status = 200);
// `status` must not be OK.
HttpResponse ErrorResponse(const absl::Status& status);
// Like ErrorResponse(status), with the given HTTP status (413, 431, 405, ...).
HttpResponse ErrorResponse(const absl::Status& status, int http_status);

// Returns the status that a response with this HTTP status and body means: the inverse of
// ErrorResponse. OK for 2xx.
absl::Status ParseErrorResponse(int http_status, std::string_view body);

// A request's target, split and decoded: "/v1/jobs/a%2Fb?wait=5" has the segments "v1", "jobs",
// "a/b". INVALID_ARGUMENT for a target that is not a path, a bad %-escape, a control character, or
// invalid UTF-8.
struct HttpTarget {
  std::string path = {};
  std::vector<std::string> segments = {};
  std::map<std::string, std::string> query = {};
};
absl::StatusOr<HttpTarget> ParseTarget(std::string_view target);

// Escapes `text` as one segment of a path or a value of a query.
std::string EscapeForTarget(std::string_view text);

// JSON of at most 64 levels; INVALID_ARGUMENT names the byte of the error. `what` names the text in
// the message.
absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view what);

}  // namespace muster::net
