// Keeps connections to HTTP servers open between requests, for any number of servers and threads.
//
// A pool belongs to one kind of trust: all its connections with TLS trust the same authorities and
// present the same certificate. It has no thread of its own: connections that were idle for too
// long are closed when the pool is next used, or by CloseIdle().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "muster/base/status.h"
#include "muster/net/tls/tls.h"

namespace muster::net {

namespace internal {
class ClientPool;
}  // namespace internal

struct HttpPoolOptions {
  std::optional<ClientTls> tls = {};  // required for https
  // Open at one time, to all servers together, with those in use: a call that would need one more
  // waits until another call ends. A watch occupies one for as long as it lasts.
  size_t max_connections = 64;
  size_t max_idle = 8;  // kept open though no call uses them; the longest idle are closed first
  double idle_seconds =
      30;  // less than servers wait, so that a kept connection is rarely a dead one
};

struct HttpPoolCounters {
  uint64_t opened = 0;  // connections, since the start
  uint64_t reused = 0;  // calls that began on a kept connection
  size_t in_use = 0;    // now
  size_t idle = 0;      // open now, but not in use
};

// Any thread.
class HttpPool {
 public:
  // Makes no connection. INVALID_ARGUMENT for certificates and keys that are invalid or do not
  // belong together; FAILED_PRECONDITION for TLS that trusts nobody.
  static absl::StatusOr<std::shared_ptr<HttpPool>> Create(HttpPoolOptions options);
  // Waits for the system's resolver if a call gave up on resolving a host's address.
  ~HttpPool();
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;

  // Closes the connections that no call uses, but for the `keep` that were used last.
  void CloseIdle(size_t keep = 0);
  HttpPoolCounters counters() const;
  // For HttpExchange.
  internal::ClientPool& connections() { return *connections_; }

 private:
  explicit HttpPool(std::unique_ptr<internal::ClientPool> connections);
  const std::unique_ptr<internal::ClientPool> connections_;
};

}  // namespace muster::net
