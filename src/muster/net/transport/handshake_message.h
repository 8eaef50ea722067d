// The messages of the handshake: bytes to values and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/handshake.h"

namespace muster::net::transport {

enum class HandshakeKind : uint16_t {
  kDialHello = 1,    // a Hello
  kAcceptHello = 2,  // a Hello and the accepting side's proof
  kDialProof = 3,    // the dialing side's proof
  kVerdict = 4,      // u32 status code, then its message; OK ends a good handshake
};

inline constexpr size_t kEnvelopeBytes = 16;
inline constexpr size_t kMaxHandshakeBody = 2048;
inline constexpr size_t kProofBytes = 32;

using Nonce = std::array<char, 32>;

// Precedes every message. Its 16 bytes have the same layout in all future versions.
struct Envelope {
  uint16_t version = 0;
  HandshakeKind kind = HandshakeKind::kVerdict;
  uint32_t body_bytes = 0;
};

struct Hello {
  Nonce nonce = {};
  Identity identity = {};
  std::string service = {};
  bool wants_checksums = false;  // of payloads, in both directions
};

// INVALID_ARGUMENT for names that are too long.
absl::Status CheckNames(const Identity& identity, const std::string& service);

// Includes the envelope.
std::string EncodeMessage(HandshakeKind kind, std::string_view body);
std::string EncodeHello(const Hello& hello);
std::string EncodeVerdict(const absl::Status& verdict);

// DATA_LOSS: not a Muster handshake, or a body above the limit. Any version is accepted.
absl::StatusOr<Envelope> DecodeEnvelope(std::string_view bytes);
// DATA_LOSS for a body that is too short, too long or has an empty name.
absl::StatusOr<Hello> DecodeHello(std::string_view body);
// The peer's status, its message made printable; DATA_LOSS for a body that is not a verdict.
absl::Status DecodeVerdict(std::string_view body);

// Untrusted text for messages: control characters become '?'.
std::string Printable(std::string_view text);

// HMAC-SHA256 under the key over `label`, a zero byte and what both sides have sent so far.
std::string Proof(const Token& key, std::string_view label, std::string_view transcript);
inline constexpr std::string_view kAcceptLabel = "muster handshake: accepting side";
inline constexpr std::string_view kDialLabel = "muster handshake: dialing side";
// Whether both are equal. Takes a time that does not depend on where they differ.
bool SameProof(std::string_view a, std::string_view b);

}  // namespace muster::net::transport
