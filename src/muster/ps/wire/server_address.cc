#include "muster/ps/wire/server_address.h"

#include "muster/base/strings.h"
#include "muster/net/transport/local_address.h"

namespace muster::ps {

net::transport::Address LocalServerAddress(const net::Token& key,
                                           const net::transport::Address& address) {
  return net::transport::LocalAddress(key, StrCat("ps\n", ToString(address)));
}

}  // namespace muster::ps
