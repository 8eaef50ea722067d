// ServerTls and ClientTls as OpenSSL wants them. Included by .cc files only.
#pragma once

#include <memory>

#include <boost/asio/ssl/context.hpp>

#include "muster/base/status.h"
#include "muster/net/tls.h"

namespace muster::net::internal {

// INVALID_ARGUMENT names what does not fit; nothing of the key is in a message.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeServerContext(const ServerTls& tls);
// Believes tls.authority alone. The name or address of the server is set for each connection.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeClientContext(const ClientTls& tls);

}  // namespace muster::net::internal
