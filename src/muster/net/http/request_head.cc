#include "muster/net/http/request_head.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace muster::net::internal {
namespace {

// These fields say where a message ends and what becomes of its connection.
constexpr std::array<std::string_view, 11> kOwnFields = {"Host",
                                                         "Content-Length",
                                                         "Transfer-Encoding",
                                                         "Connection",
                                                         "Keep-Alive",
                                                         "Upgrade",
                                                         "TE",
                                                         "Trailer",
                                                         "Expect",
                                                         "Proxy-Authorization",
                                                         "Proxy-Connection"};

bool IsMethod(std::string_view method) {
  return !method.empty() &&
         std::all_of(method.begin(), method.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// Whether it is a token by RFC 9110, 5.6.2.
bool IsFieldName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool IsFieldValue(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    return c == '\t' || !absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

bool IsOwnField(std::string_view name) {
  return std::any_of(kOwnFields.begin(), kOwnFields.end(), [&](std::string_view own) {
    return absl::EqualsIgnoreCase(ToAbsl(own), ToAbsl(name));
  });
}

absl::Status CheckField(const HttpField& field, const BearerToken* token) {
  if (!IsFieldName(field.name)) {
    return absl::InvalidArgumentError("a field's name must be letters, digits and dashes");
  }
  if (!IsFieldValue(field.value)) {
    return absl::InvalidArgumentError(
        StrCat("the value of field ", field.name, " has a line break or control character"));
  }
  if (IsOwnField(field.name)) {
    return absl::InvalidArgumentError(StrCat("field ", field.name, " is the client's own"));
  }
  if (token != nullptr && absl::EqualsIgnoreCase(field.name, "Authorization")) {
    return absl::InvalidArgumentError("field Authorization is the bearer token's");
  }
  return absl::OkStatus();
}

absl::Status CheckCall(const HttpCall& call, const BearerToken* token) {
  if (!IsMethod(call.method) || !call.target.starts_with('/') || !IsSendable(call.target)) {
    return absl::InvalidArgumentError(
        "a request wants a method such as GET and a target that starts with / and has no spaces or "
        "control characters (EscapeForTarget)");
  }
  for (const HttpField& field : call.fields) MUSTER_RETURN_IF_ERROR(CheckField(field, token));
  return absl::OkStatus();
}

std::string FrameFields(const HttpCall& call) {
  if (call.body == nullptr) {
    const bool never_has_one = call.method == "GET" || call.method == "HEAD";
    return never_has_one ? "" : "Content-Length: 0\r\n";
  }
  const std::optional<uint64_t> size = call.body->size();
  return size ? StrCat("Content-Length: ", *size, "\r\n") : "Transfer-Encoding: chunked\r\n";
}

}  // namespace

absl::StatusOr<std::string> MakeRequestHead(const HttpUrl& url, const HttpCall& call,
                                            const BearerToken* token) {
  MUSTER_RETURN_IF_ERROR(CheckCall(call, token));
  std::string head =
      StrCat(call.method, " ", url.path, call.target, " HTTP/1.1\r\nHost: ", url.authority, "\r\n");
  if (FindField(call.fields, "Accept") == nullptr) head += "Accept: */*\r\n";
  for (const HttpField& field : call.fields) head += StrCat(field.name, ": ", field.value, "\r\n");
  head += FrameFields(call);
  if (token == nullptr) return head + "\r\n";
  constexpr std::string_view kScheme = "Authorization: Bearer ";
  MUSTER_ASSIGN_OR_RETURN(std::string text, token->Read());
  const absl::Cleanup wipe = [&] { OPENSSL_cleanse(text.data(), text.size()); };
  // After this the text must not grow: that would leave a copy of the token in memory.
  head.reserve(head.size() + kScheme.size() + text.size() + 4);
  head.append(kScheme).append(text).append("\r\n\r\n");
  return head;
}

}  // namespace muster::net::internal
