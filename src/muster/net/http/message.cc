#include "muster/net/http/message.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/base/json_depth.h"
#include "muster/base/utf8.h"

namespace muster::net {
namespace {

constexpr int kMaxJsonDepth = 64;

struct CodeRow {
  absl::StatusCode code;
  int http_status;
};

constexpr std::array<CodeRow, 16> kCodes = {{
    {absl::StatusCode::kInvalidArgument, 400},
    {absl::StatusCode::kUnauthenticated, 401},
    {absl::StatusCode::kPermissionDenied, 403},
    {absl::StatusCode::kNotFound, 404},
    {absl::StatusCode::kAborted, 409},
    {absl::StatusCode::kAlreadyExists, 409},
    {absl::StatusCode::kFailedPrecondition, 412},
    {absl::StatusCode::kOutOfRange, 416},
    {absl::StatusCode::kResourceExhausted, 429},
    {absl::StatusCode::kCancelled, 499},
    {absl::StatusCode::kInternal, 500},
    {absl::StatusCode::kUnknown, 500},
    {absl::StatusCode::kDataLoss, 500},
    {absl::StatusCode::kUnimplemented, 501},
    {absl::StatusCode::kUnavailable, 503},
    {absl::StatusCode::kDeadlineExceeded, 504},
}};

int ToHttpStatus(absl::StatusCode code) {
  for (const CodeRow& row : kCodes) {
    if (row.code == code) return row.http_status;
  }
  return 500;
}

// The status of an answer that is not Muster's, but that of a proxy or another program.
absl::StatusCode CodeOfHttpStatus(int http_status) {
  for (const CodeRow& row : kCodes) {
    if (row.http_status == http_status) return row.code;
  }
  if (http_status == 502) return absl::StatusCode::kUnavailable;
  return http_status < 500 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal;
}

std::string_view GetReason(int http_status) {
  switch (http_status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return http_status < 400 ? "Success" : "Error";
  }
}

std::optional<absl::StatusCode> CodeOfName(std::string_view name) {
  for (const CodeRow& row : kCodes) {
    if (absl::StatusCodeToString(row.code) == name) return row.code;
  }
  return std::nullopt;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

absl::StatusOr<std::string> Decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return absl::InvalidArgumentError("request target: % without two hex digits after it");
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError("request target: it contains a control character");
    }
    decoded.push_back(c);
  }
  if (!IsUtf8(decoded)) return absl::InvalidArgumentError("request target: it is not UTF-8");
  return decoded;
}

absl::Status ParseQuery(std::string_view text, std::map<std::string, std::string>* query) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    MUSTER_ASSIGN_OR_RETURN(std::string key, Decode(pair.substr(0, equals), true));
    MUSTER_ASSIGN_OR_RETURN(std::string value,
                            Decode(pair.substr(std::min(equals + 1, pair.size())), true));
    (*query)[std::move(key)] = std::move(value);
  }
  return absl::OkStatus();
}

}  // namespace

std::string SerializeResponse(const HttpResponse& response, bool keep_alive) {
  std::string bytes = StrCat("HTTP/1.1 ", response.status, " ", GetReason(response.status),
                             "\r\nContent-Type: ", response.content_type,
                             "\r\nContent-Length: ", response.body.size(),
                             "\r\nConnection: ", keep_alive ? "keep-alive" : "close",
                             "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
  for (const auto& [name, value] : response.fields) bytes += StrCat(name, ": ", value, "\r\n");
  bytes += "\r\n";
  bytes += response.body;
  return bytes;
}

HttpResponse JsonResponse(const Json& body, int status) {
  // Bytes that are no UTF-8, such as a program's last lines, must not become an exception.
  return {.status = status,
          .body = body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

HttpResponse TextResponse(std::string text, int status) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(text)};
}

HttpResponse ErrorResponse(const absl::Status& status) {
  return ErrorResponse(status, ToHttpStatus(status.code()));
}

HttpResponse ErrorResponse(const absl::Status& status, int http_status) {
  Json error = {{"code", absl::StatusCodeToString(status.code())},
                {"message", std::string(status.message())}};
  return JsonResponse({{"error", std::move(error)}}, http_status);
}

absl::Status ParseErrorResponse(int http_status, std::string_view body) {
  if (http_status >= 200 && http_status < 300) return absl::OkStatus();
  absl::StatusCode code = CodeOfHttpStatus(http_status);
  std::string message = StrCat("HTTP status ", http_status);
  const absl::StatusOr<Json> parsed = ParseJson(body, "answer");
  if (parsed.ok() && parsed->is_object() && parsed->contains("error")) {
    const Json& error = (*parsed)["error"];
    if (error.is_object() && error.contains("message") && error["message"].is_string()) {
      message = error["message"].get<std::string>();
    }
    if (error.is_object() && error.contains("code") && error["code"].is_string()) {
      code = CodeOfName(error["code"].get_ref<const std::string&>()).value_or(code);
    }
  }
  return {code, message};
}

absl::StatusOr<HttpTarget> ParseTarget(std::string_view target) {
  const size_t question = std::min(target.find('?'), target.size());
  HttpTarget parsed = {.path = std::string(target.substr(0, question))};
  if (parsed.path.empty() || parsed.path.front() != '/') {
    return absl::InvalidArgumentError("request target: it must be a path that starts with /");
  }
  std::string_view rest = std::string_view(parsed.path).substr(1);
  while (!rest.empty()) {
    const std::string_view segment = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(segment.size() + 1, rest.size()));
    MUSTER_ASSIGN_OR_RETURN(std::string decoded, Decode(segment, false));
    parsed.segments.push_back(std::move(decoded));
  }
  if (question < target.size()) {
    MUSTER_RETURN_IF_ERROR(ParseQuery(target.substr(question + 1), &parsed.query));
  }
  return parsed;
}

std::string EscapeForTarget(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      escaped.push_back(c);
    } else {
      escaped += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return escaped;
}

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view what) {
  if (const size_t at = FindDeeperJson(text, kMaxJsonDepth); at != text.npos) {
    return absl::InvalidArgumentError(
        StrCat(what, ": byte ", at, ": more than ", kMaxJsonDepth, " levels of lists and maps"));
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(
        StrCat(what, ": byte ", error.byte, ": this is no JSON; send one JSON value"));
  } catch (const Json::exception& error) {  // a number beyond every range
    return absl::InvalidArgumentError(StrCat(what, ": ", error.what()));
  }
}

}  // namespace muster::net
