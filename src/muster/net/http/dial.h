// Connects to the host of a URL. Included by .cc files of this layer only: Asio takes seconds to
// compile.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "muster/base/status.h"
#include "muster/net/http/client_loop.h"
#include "muster/net/http/url.h"

namespace muster::net::internal {

// Tries the host's addresses one after the other, each with its share of the time that is left.
// "localhost" is this machine's two loopback addresses, whatever a name server says, since a token
// may go there in plain text. Other names are resolved in a thread of the loop, which the loop
// waits for when it is destroyed, even after the deadline.
//
// Errors: UNAVAILABLE and DEADLINE_EXCEEDED, with the reason for each address; CANCELLED. If
// descriptors or threads run out it returns RESOURCE_EXHAUSTED or Asio throws a std::exception. The
// socket is close-on-exec from the moment it exists.
absl::StatusOr<boost::asio::ip::tcp::socket> Dial(ClientLoop& loop, const HttpUrl& url,
                                                  SteadyTime deadline);

}  // namespace muster::net::internal
