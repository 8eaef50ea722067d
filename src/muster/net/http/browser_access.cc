#include "muster/net/http/browser_access.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::net {
namespace {

constexpr std::string_view kKeyParameter = "token=";

bool IsPlainGet(const HttpRequestReader& request) {
  return request.method() == "GET" && !request.has_body();
}

// A target without the parameters named token, and the value of the last such parameter.
struct SplitTarget {
  std::string rest;
  std::string_view key;
};

SplitTarget SplitKey(std::string_view target) {
  const size_t question = target.find('?');
  SplitTarget split{.rest = std::string(target.substr(0, question)), .key = {}};
  if (question == std::string_view::npos) return split;
  std::vector<std::string> kept;
  for (const absl::string_view part :
       absl::StrSplit(ToAbsl(target.substr(question + 1)), '&', absl::SkipEmpty())) {
    const std::string_view text = ToStd(part);
    if (text.starts_with(kKeyParameter)) {
      split.key = text.substr(kKeyParameter.size());
    } else {
      kept.emplace_back(text);
    }
  }
  if (!kept.empty()) split.rest += StrCat("?", absl::StrJoin(kept, "&"));
  return split;
}

}  // namespace

BrowserAccess::BrowserAccess(const Token& token, uint16_t port, bool tls)
    : key_(token.Derive("muster browser key 1")), cookie_(StrCat("muster-", port)), tls_(tls) {}

bool BrowserAccess::MayRead(const HttpRequestReader& request) const {
  if (!IsPlainGet(request)) return false;
  const std::string_view site = request.Field("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") return false;
  for (const absl::string_view pair : absl::StrSplit(ToAbsl(request.Field("Cookie")), ';')) {
    const std::string_view text = ToStd(absl::StripAsciiWhitespace(pair));
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || text.substr(0, equals) != cookie_) continue;
    if (key_.Matches(text.substr(equals + 1))) return true;
  }
  return false;
}

std::optional<HttpResponse> BrowserAccess::Redirect(const HttpRequestReader& request) const {
  // A target "//host/..." would lead to another host.
  if (!IsPlainGet(request) || request.target().starts_with("//")) return std::nullopt;
  const SplitTarget split = SplitKey(request.target());
  if (!key_.Matches(split.key)) return std::nullopt;
  HttpResponse response = TextResponse("", 303);
  response.fields["Location"] = split.rest;
  response.fields["Set-Cookie"] = StrCat(
      cookie_, "=", key_.Reveal(), "; Path=/; HttpOnly; SameSite=Strict", tls_ ? "; Secure" : "");
  response.fields["Cache-Control"] = "no-store";
  response.fields["Referrer-Policy"] = "no-referrer";
  return response;
}

std::string BrowserAccess::TargetWithKey(std::string_view path) const {
  const bool has_query = path.find('?') != std::string_view::npos;
  return StrCat(path, has_query ? "&" : "?", kKeyParameter, key_.Reveal());
}

}  // namespace muster::net
