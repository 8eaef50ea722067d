#include "muster/net/transport/stream_conformance.h"

#include "muster/net/transport/channel_conformance.h"
#include "muster/net/transport/fault_stream.h"
#include "muster/net/transport/kernel_tls.h"

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

Protection TestTls(const TlsOptions& options = {}) {
  return Everywhere(MakeTls(MakeAuthority("job", 1).value(), options));
}

using Kind = Address::Kind;

std::vector<StreamMember> GetMembers() {
  std::vector<StreamMember> members = {
      {.name = "Tcp", .kind = Kind::kTcp},
      {.name = "TcpChecksum", .kind = Kind::kTcp, .channel = {.checksum = true}},
      {.name = "Unix", .kind = Kind::kUnix},
      {.name = "SharedMemory", .kind = Kind::kSharedMemory},
      {.name = "SharedMemorySpinning", .kind = Kind::kSharedMemory, .channel = {.spin_micros = 20}},
      {.name = "FaultNone", .kind = Kind::kUnix, .wrap = WithoutFaults},
      {.name = "FaultSmallPieces",
       .kind = Kind::kSharedMemory,
       .wrap = InSmallPieces,
       .channel = {.checksum = true}},
      {.name = "FaultSmallPiecesTcp", .kind = Kind::kTcp, .wrap = InSmallPieces},
      {.name = "Tls", .kind = Kind::kTcp, .protection = TestTls()},
      {.name = "TlsNewKeys", .kind = Kind::kTcp, .protection = TestTls({.records_per_key = 3})},
      {.name = "FaultSmallPiecesTls",
       .kind = Kind::kTcp,
       .wrap = InSmallPieces,
       .protection = TestTls({.records_per_key = 100})}};
  if (KernelChangesTlsKeys()) {
    const TlsOptions by_kernel = {.by_kernel = true};
    const TlsOptions new_keys = {.records_per_key = 3, .by_kernel = true};
    members.push_back(
        {.name = "TlsByKernel", .kind = Kind::kTcp, .protection = TestTls(by_kernel)});
    members.push_back(
        {.name = "TlsByKernelNewKeys", .kind = Kind::kTcp, .protection = TestTls(new_keys)});
  }
  return members;
}

INSTANTIATE_TEST_SUITE_P(Members, StreamConformance, testing::ValuesIn(GetMembers()),
                         StreamMemberName);

}  // namespace
}  // namespace muster::net::transport
