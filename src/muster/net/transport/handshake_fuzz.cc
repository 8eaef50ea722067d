// Any bytes as what a stranger says in a handshake, to either side: the first byte says to which,
// and in what pieces. Nobody gets in without the key.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "muster/net/transport/fuzz_stream.h"
#include "muster/net/transport/handshake.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::net::Token;
  using muster::net::transport::AcceptHandshake;
  using muster::net::transport::DialHandshake;
  using muster::net::transport::FuzzStream;
  using muster::net::transport::Identity;
  using muster::net::transport::Interrupt;
  using muster::process::Deadline;

  if (size == 0) return 0;
  static const auto never = Interrupt::Create().value();
  static const Token key = Token::Make().value();
  const Identity self = {.job = "job", .role = "worker"};
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  FuzzStream stream(bytes, 1 + data[0] % 128);
  const Deadline deadline = Deadline::After(60);
  const auto peer = (data[0] & 0x80) != 0
                        ? DialHandshake(stream, key, self, "ring", deadline, *never)
                        : AcceptHandshake(stream, key, self, {}, deadline, *never);
  if (peer.ok()) std::abort();
  return 0;
}
