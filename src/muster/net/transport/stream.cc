#include "muster/net/transport/stream.h"

#include <algorithm>
#include <cstring>

namespace muster::net::transport {

namespace {

// Pieces are small, so that the peer soon has room again and continues while we read the next one.
constexpr size_t kPieceToCopy = size_t{64} << 10;

}  // namespace

absl::StatusOr<size_t> Stream::Read(MutableBytes to) {
  MUSTER_ASSIGN_OR_RETURN(const ConstBytes there, Peek());
  const size_t n = std::min({there.size(), to.size(), kPieceToCopy});
  if (n == 0) return 0;
  std::memcpy(to.data(), there.data(), n);
  Consume(n);
  return n;
}

absl::Status Stream::SetTlsKey(const TlsKey&) {
  return absl::UnimplementedError(StrCat("the stream to ", peer(), " encrypts nothing"));
}

absl::StatusOr<bool> Stream::WriteTlsRecord(uint8_t, ConstBytes, double) {
  return absl::UnimplementedError(StrCat("the stream to ", peer(), " encrypts nothing"));
}

}  // namespace muster::net::transport
