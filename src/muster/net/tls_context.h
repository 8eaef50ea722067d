// ServerTls as OpenSSL wants it. Included by .cc files of this layer only.
#pragma once

#include <memory>

#include <boost/asio/ssl/context.hpp>

#include "muster/base/status.h"
#include "muster/net/tls.h"

namespace muster::net::internal {

// INVALID_ARGUMENT names what does not fit; nothing of the key is in a message.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeServerContext(const ServerTls& tls);

}  // namespace muster::net::internal
