#include "muster/net/transport/stream.h"

#include <algorithm>
#include <cstring>

namespace muster::net::transport {

absl::StatusOr<size_t> Stream::Read(MutableBytes to) {
  MUSTER_ASSIGN_OR_RETURN(const ConstBytes there, Peek());
  const size_t n = std::min(there.size(), to.size());
  if (n == 0) return 0;
  std::memcpy(to.data(), there.data(), n);
  Consume(n);
  return n;
}

}  // namespace muster::net::transport
