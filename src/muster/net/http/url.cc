#include "muster/net/http/url.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

#include "muster/net/listen.h"

namespace muster::net::internal {
namespace {

constexpr char kForm[] = "HTTP client: the server's URL is none; write http://HOST:PORT";

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
}

// Takes "http://" or "https://" from the front.
absl::Status CutScheme(std::string_view* text, HttpUrl* url) {
  const size_t colon = text->find("://");
  const std::string_view scheme = text->substr(0, std::min(colon, text->size()));
  url->is_tls = absl::EqualsIgnoreCase(ToAbsl(scheme), "https");
  if (colon == text->npos) return absl::InvalidArgumentError(kForm);
  if (!url->is_tls && !absl::EqualsIgnoreCase(ToAbsl(scheme), "http")) {
    return absl::InvalidArgumentError(
        "HTTP client: the server's URL must be http://HOST:PORT or https://HOST:PORT");
  }
  text->remove_prefix(colon + 3);
  return absl::OkStatus();
}

absl::Status SetPort(std::string_view text, HttpUrl* url) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, url->port);
  if (parsed.ec == std::errc() && parsed.ptr == end && url->port > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("HTTP client: the server's URL has no port of 1 to 65535");
}

// `after` is what follows the host: nothing, or ":PORT".
absl::Status SetHost(std::string_view host, std::string_view after, HttpUrl* url) {
  url->host = std::string(host);
  const bool bracketed = url->authority.starts_with('[');
  const absl::StatusOr<NumericAddress> address = ParseAddress(url->host);
  url->is_numeric = address.ok() && address->is_v6 == bracketed;
  url->is_loopback =
      url->is_numeric ? address->is_loopback : absl::EqualsIgnoreCase(ToAbsl(host), "localhost");
  const bool is_name = !host.empty() && std::all_of(host.begin(), host.end(), IsNameCharacter) &&
                       host.find_first_not_of("0123456789.") != host.npos;
  if (!url->is_numeric && (bracketed || !is_name)) return absl::InvalidArgumentError(kForm);
  url->port = url->is_tls ? 443 : 80;
  if (after.empty()) return absl::OkStatus();
  if (after.front() != ':') return absl::InvalidArgumentError(kForm);
  return SetPort(after.substr(1), url);
}

}  // namespace

bool IsSendable(std::string_view target) {
  return std::all_of(target.begin(), target.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f;
  });
}

absl::StatusOr<HttpUrl> ParseHttpUrl(std::string_view text) {
  HttpUrl url = {.base = std::string(text.substr(0, text.find_last_not_of('/') + 1))};
  std::string_view rest = url.base;
  MUSTER_RETURN_IF_ERROR(CutScheme(&rest, &url));
  if (rest.find_first_of("?#@") != rest.npos || !IsSendable(rest)) {
    return absl::InvalidArgumentError(
        "HTTP client: the server's URL must be http://HOST:PORT or https://HOST:PORT, without "
        "user, password or query");
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.path = std::string(rest.substr(slash));
  url.authority = std::string(rest.substr(0, slash));
  const std::string_view authority = url.authority;
  if (!authority.starts_with('[')) {
    const size_t colon = std::min(authority.find(':'), authority.size());
    MUSTER_RETURN_IF_ERROR(SetHost(authority.substr(0, colon), authority.substr(colon), &url));
    return url;
  }
  const size_t end = authority.find(']');
  if (end == authority.npos) return absl::InvalidArgumentError(kForm);
  MUSTER_RETURN_IF_ERROR(SetHost(authority.substr(1, end - 1), authority.substr(end + 1), &url));
  return url;
}

}  // namespace muster::net::internal
