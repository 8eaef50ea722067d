#include "muster/net/http/pool.h"

#include <utility>

#include "muster/net/http/client_pool.h"
#include "muster/net/tls/tls_context.h"

namespace muster::net {

HttpPool::HttpPool(std::unique_ptr<internal::ClientPool> connections)
    : connections_(std::move(connections)) {}

HttpPool::~HttpPool() = default;

absl::StatusOr<std::shared_ptr<HttpPool>> HttpPool::Create(HttpPoolOptions options) {
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (options.tls) {
    MUSTER_ASSIGN_OR_RETURN(tls, internal::MakeClientContext(*options.tls));
    options.tls.reset();  // with its key
  }
  if (options.max_connections == 0) {
    return absl::InvalidArgumentError("HTTP pool: it must be allowed at least one connection");
  }
  return std::shared_ptr<HttpPool>(
      new HttpPool(std::make_unique<internal::ClientPool>(options, std::move(tls))));
}

void HttpPool::CloseIdle(size_t keep) { connections_->CloseIdle(keep); }

HttpPoolCounters HttpPool::counters() const { return connections_->counters(); }

}  // namespace muster::net
