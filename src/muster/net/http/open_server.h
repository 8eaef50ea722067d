// A server for strangers: the few routes that a platform must reach without a secret, such as
// /healthz and /metrics, on a port of their own. No other route is on that port, and none there
// may return a secret or change anything: docs/security.md lists what is open.
//
// A request costs the same whatever a stranger sends: only a GET without a body is answered, the
// answer does not depend on anything in the request but its path, and an answer is made at most
// once a second and given to everybody who asks meanwhile. At most 64 connections are open; one
// more closes the oldest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/net/http/message.h"
#include "muster/net/http/server.h"

namespace muster::net {

struct OpenRoute {
  std::string path = {};                      // "/healthz"
  std::function<HttpResponse()> answer = {};  // runs on the server's own thread
};

class OpenServer {
 public:
  // The server listens when Start returns: `address` is numeric and may be reached by other
  // machines; port 0: the system chooses. ALREADY_EXISTS for a port that is taken; INVALID_ARGUMENT
  // for an invalid address or route.
  static absl::StatusOr<std::unique_ptr<OpenServer>> Start(const std::string& address,
                                                           uint16_t port,
                                                           std::vector<OpenRoute> routes);
  // Ends the thread, as does the destructor; afterwards no answer is made.
  void Stop() { server_->Stop(); }
  uint16_t port() const { return server_->port(); }
  HttpCounters counters() const { return server_->counters(); }

 private:
  explicit OpenServer(std::unique_ptr<HttpServer> server) : server_(std::move(server)) {}
  std::unique_ptr<HttpServer> server_;
};

}  // namespace muster::net
