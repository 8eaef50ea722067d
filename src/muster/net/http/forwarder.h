// HttpForwarder: a port of this machine that leads to a path of another server, for a browser,
// which cannot show that server a token or a certificate.
//
// Every program of this machine may use the port, so it must lead to nothing that others may not
// see. Web pages of other origins may not, and no request gets above the path: "..", also escaped,
// is refused. Of a request's fields only those of HttpForwarderOptions::request_fields are sent on,
// and of an answer's those that describe its body. Both bodies are kept in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/net/http/call.h"
#include "muster/net/http/exchange.h"

namespace muster::net {

struct HttpForwarderOptions {
  uint16_t port = 0;  // of 127.0.0.1; 0: the system chooses
  // What precedes every target: "/api/v1/namespaces/n/services/s/proxy". A request whose target has
  // it already, as links in pages of an API server's proxy do, gets no second one.
  std::string prefix = {};
  std::vector<std::string> request_fields = {"Accept", "Accept-Encoding", "Accept-Language",
                                             "Content-Type"};
  int calls = 8;  // at a time
};

// One owner thread.
class HttpForwarder {
 public:
  // Makes a call of the other server. Any thread; many at a time.
  using Send = std::function<absl::StatusOr<HttpAnswer>(HttpCall call)>;

  // It answers when Start returns. ALREADY_EXISTS for a port that is taken.
  static absl::StatusOr<std::unique_ptr<HttpForwarder>> Start(HttpForwarderOptions options,
                                                              Send send);
  // Waits for the calls in progress.
  ~HttpForwarder();
  HttpForwarder(const HttpForwarder&) = delete;
  HttpForwarder& operator=(const HttpForwarder&) = delete;

  std::string url() const;  // "http://127.0.0.1:6006"

 private:
  struct State;
  explicit HttpForwarder(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace muster::net
