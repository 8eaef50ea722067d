// TicketCaller: calls of Hadoop's web servers, with the Kerberos ticket of this process's user
// where they want one (files/hdfs/spnego.h).
#pragma once

#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/files/hdfs/spnego.h"
#include "muster/net/http/exchange.h"

namespace muster::launch::yarn {

// One owner thread.
class TicketCaller {
 public:
  // As HttpExchange::Fetch(). `url` is the server's. A call that is refused for want of a ticket is
  // sent again with one; UNAUTHENTICATED says what to do if there is none.
  absl::StatusOr<net::HttpAnswer> Fetch(net::HttpExchange& server, const std::string& url,
                                        net::HttpCall call, size_t max_body_bytes,
                                        const net::HttpTimeouts& timeouts);

 private:
  std::unique_ptr<files::Spnego> spnego_;  // once a server has wanted it
};

}  // namespace muster::launch::yarn
