// OpenSSL contexts from ServerTls and ClientTls. Included by .cc files only.
#pragma once

#include <memory>

#include <boost/asio/ssl/context.hpp>

#include "muster/base/status.h"
#include "muster/net/tls/tls.h"

namespace muster::net::internal {

// INVALID_ARGUMENT names what does not fit; no message contains any part of the key.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeServerContext(const ServerTls& tls);
// Trusts tls.authority or, if told to, the machine's authorities; FAILED_PRECONDITION if neither is
// given, INVALID_ARGUMENT for both. The name or address of the server is set for each connection.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeClientContext(const ClientTls& tls);

}  // namespace muster::net::internal
