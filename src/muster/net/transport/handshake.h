// Who is at the other end of a Stream: both sides prove that they have the job's key.
//
// HMAC-SHA256 (RFC 2104) over both sides' nonces and claims, keyed with the job's token, which
// never travels; each direction has a label of its own, so that no proof can be sent back as
// another. Whether frames carry checksums is agreed on here, under the same proofs: they do where
// either end wants it (stream.h). Within TLS (tls_stream.h) the proofs are over what the two ends
// of that connection alone know, too, so that nobody with a certificate stands in between. The
// bytes are in docs/formats/frames.md. What follows on the stream is as it was: without TLS it is
// not encrypted and, but for checksums against accidents, not protected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"

#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/stream.h"
#include "muster/process/deadline.h"

namespace muster::net::transport {

inline constexpr uint16_t kProtocolVersion = 2;
// Names are of 1 byte (a service: 0) to so many.
inline constexpr size_t kMaxJobBytes = 255, kMaxRoleBytes = 63, kMaxServiceBytes = 63;

// What each side says of itself; proven to come from somebody with the key.
struct Identity {
  std::string job = {};   // its name or id
  std::string role = {};  // "worker"
  uint32_t index = 0;
  uint64_t incarnation = 0;  // of this task: grows with each start
  uint64_t epoch = 0;        // of the membership that it knows

  friend bool operator==(const Identity&, const Identity&) = default;
};

// "worker 3"
std::string ShortName(const Identity& identity);

struct Peer {
  Identity identity = {};
  std::string service = {};  // what the dialing side asks for: "ring", "ps"; empty at its own end
};

// Refuses a peer that has the key, by a status that is sent to it as it is.
using Admit = std::function<absl::Status(const Peer& peer)>;

// Both: bounded memory, no byte read beyond the handshake. Errors, which both sides get:
//   FAILED_PRECONDITION  another version or another job, both named
//   UNAUTHENTICATED      another key: nothing more is said
//   DATA_LOSS            no handshake at all
//   UNAVAILABLE, DEADLINE_EXCEEDED, the interrupt's; for the dialing side what Admit said
// After an error the stream is good for nothing.
absl::StatusOr<Peer> DialHandshake(Stream& stream, const Token& key, const Identity& self,
                                   const std::string& service, process::Deadline deadline,
                                   const Interrupt& interrupt);
absl::StatusOr<Peer> AcceptHandshake(Stream& stream, const Token& key, const Identity& self,
                                     const Admit& admit, process::Deadline deadline,
                                     const Interrupt& interrupt);

}  // namespace muster::net::transport
