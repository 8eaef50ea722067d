// Authenticates the two ends of a Stream: both sides prove that they have the job's key.
//
// HMAC-SHA256 (RFC 2104) over both sides' nonces and claims, keyed with the job's token, which is
// never sent; each direction has its own label, so that no proof can be replayed in the other
// direction. The same proofs cover the agreement on checksums: frames carry them if either end
// wants it (stream.h). Within TLS (tls_stream.h) the proofs also cover a secret that only the two
// ends of that connection know, so that nobody with a certificate can be a man in the middle. The
// bytes are in docs/formats/frames.md. The handshake does not change what follows on the stream:
// without TLS it is not encrypted and, except for checksums against accidents, not protected.
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

inline constexpr uint16_t kProtocolVersion = 5;
// Names have from 1 byte (a service: 0) to this many.
inline constexpr size_t kMaxJobBytes = 255, kMaxRoleBytes = 63, kMaxServiceBytes = 63;

// What each side states about itself; proven to come from a holder of the key.
struct Identity {
  std::string job = {};   // its name or id
  std::string role = {};  // "worker"
  uint32_t index = 0;
  uint64_t incarnation = 0;  // of this task; grows with each start
  uint64_t generation = 0;   // of the membership that the task knows

  friend bool operator==(const Identity&, const Identity&) = default;
};

// "worker 3"
std::string ShortName(const Identity& identity);

struct Peer {
  Identity identity = {};
  std::string service = {};  // what the dialing side asks for: "ring", "ps"; "" in its own result
};

// May refuse a peer that has the key, by a status that is sent to the peer unchanged.
using Admit = std::function<absl::Status(const Peer& peer)>;

// Both use bounded memory and read no byte beyond the handshake. Errors, which both sides get:
//   FAILED_PRECONDITION  another version or another job, both named
//   UNAUTHENTICATED      another key, without details
//   DATA_LOSS            not a handshake
//   UNAVAILABLE, DEADLINE_EXCEEDED, the interrupt's; for the dialing side what Admit returned
// After an error the stream is unusable.
absl::StatusOr<Peer> DialHandshake(Stream& stream, const Token& key, const Identity& self,
                                   const std::string& service, process::Deadline deadline,
                                   const Interrupt& interrupt);
absl::StatusOr<Peer> AcceptHandshake(Stream& stream, const Token& key, const Identity& self,
                                     const Admit& admit, process::Deadline deadline,
                                     const Interrupt& interrupt);

}  // namespace muster::net::transport
