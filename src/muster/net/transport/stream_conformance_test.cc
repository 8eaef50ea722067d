#include "muster/net/transport/stream_conformance.h"

#include "muster/net/transport/channel_conformance.h"
#include "muster/net/transport/fault_stream.h"

namespace muster::net::transport {
namespace {

std::unique_ptr<Stream> WithoutFaults(std::unique_ptr<Stream> stream) {
  return NewFaultStream(std::move(stream), {}).value();
}

// Every call may move a few bytes only, and the next comes late: slow but right.
std::unique_ptr<Stream> InSmallPieces(std::unique_ptr<Stream> stream) {
  const FaultOptions faults = {.seed = 17, .short_io = 0.5, .delay = 0.001, .delay_micros = 200};
  return NewFaultStream(std::move(stream), faults).value();
}

Protection TestTls(uint64_t records_per_key = Tls::kRecordsPerKey) {
  return Everywhere(MakeTls(MakeAuthority("job", 1).value(), records_per_key));
}

using Kind = Address::Kind;

INSTANTIATE_TEST_SUITE_P(
    Members, StreamConformance,
    testing::Values(
        StreamMember{.name = "Tcp", .kind = Kind::kTcp},
        StreamMember{.name = "TcpChecksum", .kind = Kind::kTcp, .channel = {.checksum = true}},
        StreamMember{.name = "Unix", .kind = Kind::kUnix},
        StreamMember{.name = "SharedMemory", .kind = Kind::kSharedMemory},
        StreamMember{.name = "SharedMemorySpinning",
                     .kind = Kind::kSharedMemory,
                     .channel = {.spin_micros = 20}},
        StreamMember{.name = "FaultNone", .kind = Kind::kUnix, .wrap = WithoutFaults},
        StreamMember{.name = "FaultSmallPieces",
                     .kind = Kind::kSharedMemory,
                     .wrap = InSmallPieces,
                     .channel = {.checksum = true}},
        StreamMember{.name = "FaultSmallPiecesTcp", .kind = Kind::kTcp, .wrap = InSmallPieces},
        StreamMember{.name = "Tls", .kind = Kind::kTcp, .protection = TestTls()},
        StreamMember{.name = "TlsNewKeys", .kind = Kind::kTcp, .protection = TestTls(3)},
        StreamMember{.name = "FaultSmallPiecesTls",
                     .kind = Kind::kTcp,
                     .wrap = InSmallPieces,
                     .protection = TestTls(100)}),
    StreamMemberName);

}  // namespace
}  // namespace muster::net::transport
