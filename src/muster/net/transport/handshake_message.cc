#include "muster/net/transport/handshake_message.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>

#include "muster/base/byte_reader.h"

namespace muster::net::transport {
namespace {

constexpr std::string_view kHandshakeMagic = "MUSTRNET";
constexpr uint32_t kWantsChecksums = 1;  // a hello's flag

// Numbers of a fixed size are little-endian, as they are in memory (frame.cc asserts that).
template <typename Number>
void Put(std::string* to, Number number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof number);
}

void PutName(std::string* to, std::string_view name) {
  Put(to, static_cast<uint8_t>(name.size()));
  to->append(name);
}

// A length of at most `most`, in one byte, and then that many bytes.
bool ReadName(ByteReader& reader, size_t most, std::string* name) {
  uint8_t size = 0;
  std::string_view bytes;
  if (!reader.Read(&size) || size > most || !reader.ReadBytes(size, &bytes)) return false;
  name->assign(bytes);
  return true;
}

absl::Status CheckName(std::string_view what, const std::string& name, size_t least, size_t most) {
  if (name.size() >= least && name.size() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("a ", what, " of ", name.size(), " bytes: must have ", least, " to ", most));
}

}  // namespace

absl::Status CheckNames(const Identity& identity, const std::string& service) {
  MUSTER_RETURN_IF_ERROR(CheckName("job's name", identity.job, 1, kMaxJobBytes));
  MUSTER_RETURN_IF_ERROR(CheckName("role", identity.role, 1, kMaxRoleBytes));
  return CheckName("service's name", service, 0, kMaxServiceBytes);
}

std::string EncodeMessage(HandshakeKind kind, std::string_view body) {
  std::string bytes(kHandshakeMagic);
  Put(&bytes, kProtocolVersion);
  Put(&bytes, static_cast<uint16_t>(kind));
  Put(&bytes, static_cast<uint32_t>(body.size()));
  bytes.append(body);
  return bytes;
}

std::string EncodeHello(const Hello& hello) {
  std::string body(hello.nonce.data(), hello.nonce.size());
  Put(&body, hello.identity.incarnation);
  Put(&body, hello.identity.generation);
  Put(&body, hello.identity.index);
  Put(&body, hello.wants_checksums ? kWantsChecksums : uint32_t{0});
  PutName(&body, hello.identity.job);
  PutName(&body, hello.identity.role);
  PutName(&body, hello.service);
  return body;
}

std::string EncodeVerdict(const absl::Status& verdict) {
  std::string body;
  Put(&body, static_cast<uint32_t>(verdict.code()));
  body.append(ToStd(verdict.message()).substr(0, kMaxHandshakeBody - sizeof(uint32_t)));
  return EncodeMessage(HandshakeKind::kVerdict, body);
}

absl::StatusOr<Envelope> DecodeEnvelope(std::string_view bytes) {
  ByteReader reader(bytes);
  std::string_view magic;
  reader.ReadBytes(kHandshakeMagic.size(), &magic);
  if (magic != kHandshakeMagic) {
    return absl::DataLossError(StrCat("'", Printable(bytes.substr(0, 8)),
                                      "' came where a handshake was due: no task of Muster"));
  }
  Envelope envelope;
  reader.Read(&envelope.version);
  reader.Read(&envelope.kind);
  reader.Read(&envelope.body_bytes);
  if (!reader.done()) return absl::DataLossError("a handshake that is cut short");
  if (envelope.body_bytes > kMaxHandshakeBody) {
    return absl::DataLossError(StrCat("a handshake's message of ", envelope.body_bytes,
                                      " bytes: has at most ", kMaxHandshakeBody));
  }
  return envelope;
}

absl::StatusOr<Hello> DecodeHello(std::string_view body) {
  ByteReader reader(body);
  Hello hello;
  Identity& identity = hello.identity;
  std::string_view nonce;
  uint32_t flags = 0;
  const bool read = reader.ReadBytes(hello.nonce.size(), &nonce) &&
                    reader.Read(&identity.incarnation) && reader.Read(&identity.generation) &&
                    reader.Read(&identity.index) && reader.Read(&flags) &&
                    ReadName(reader, kMaxJobBytes, &identity.job) &&
                    ReadName(reader, kMaxRoleBytes, &identity.role) &&
                    ReadName(reader, kMaxServiceBytes, &hello.service) && reader.done();
  hello.wants_checksums = (flags & kWantsChecksums) != 0;
  if (!read || (flags & ~kWantsChecksums) != 0 || !CheckNames(identity, hello.service).ok()) {
    return absl::DataLossError(StrCat("a hello of ", body.size(), " bytes with other contents"));
  }
  std::memcpy(hello.nonce.data(), nonce.data(), nonce.size());
  return hello;
}

absl::Status DecodeVerdict(std::string_view body) {
  ByteReader reader(body);
  uint32_t code = 0;
  if (!reader.Read(&code)) return absl::DataLossError("a verdict that is cut short");
  if (code == 0) return absl::OkStatus();
  if (code > 16) code = static_cast<uint32_t>(absl::StatusCode::kUnknown);
  return absl::Status(static_cast<absl::StatusCode>(code), Printable(body.substr(sizeof code)));
}

std::string Printable(std::string_view text) {
  std::string printable(text);
  std::replace_if(
      printable.begin(), printable.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; },
      '?');
  return printable;
}

std::string Proof(const Token& key, std::string_view label, std::string_view transcript) {
  std::string said(label);
  said.push_back('\0');
  said.append(transcript);
  std::string proof(kProofBytes, '\0');
  unsigned size = 0;
  const std::string& secret = key.Reveal();
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(said.data()), said.size(),
       reinterpret_cast<unsigned char*>(proof.data()), &size);
  return proof;
}

bool SameProof(std::string_view a, std::string_view b) {
  return a.size() == kProofBytes && b.size() == kProofBytes &&
         CRYPTO_memcmp(a.data(), b.data(), kProofBytes) == 0;
}

}  // namespace muster::net::transport
