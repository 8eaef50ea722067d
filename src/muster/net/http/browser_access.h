// How a person's browser reads from a server that has a token (docs/security.md).
//
// The person opens a URL with "?token=KEY". The server answers it with a redirect to the same URL
// without the key, which it puts into a cookie that scripts cannot read (HttpOnly) and other sites'
// pages cannot send (SameSite=Strict). The key thereby disappears from the address bar, from the
// history and from the Referer field that the page's links would send.
//
// The key is not the token: it is derived from it, and allows reading (GET) alone. Browsers send a
// host's cookies to all ports of the host, so another user's server on this machine could be sent
// the key; it must not be able to stop the job with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/net/http/message.h"
#include "muster/net/http/request_reader.h"
#include "muster/net/token.h"

namespace muster::net {

// Immutable; any thread.
class BrowserAccess {
 public:
  // `port`: the server's own, which is part of the cookie's name, since servers on other ports of
  // the same host share its cookies. `tls`: the cookie is sent over TLS only.
  BrowserAccess(const Token& token, uint16_t port, bool tls);

  // Whether a request may be answered as if it had the token: a GET without a body that shows the
  // cookie, unless the browser says that another site's page made it.
  bool MayRead(const HttpRequestReader& request) const;

  // The answer to a GET whose URL has the right key; nullopt if it has not.
  std::optional<HttpResponse> Redirect(const HttpRequestReader& request) const;

  // "/path?token=KEY" for a person to open; `path` may have a query. The result is secret.
  std::string TargetWithKey(std::string_view path) const;

 private:
  Token key_;
  std::string cookie_;  // its name
  bool tls_ = false;
};

}  // namespace muster::net
