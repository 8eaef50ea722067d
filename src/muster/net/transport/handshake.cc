#include "muster/net/transport/handshake.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "muster/net/transport/handshake_message.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using process::Deadline;

constexpr size_t kFrameAlignment = 8;
constexpr std::string_view kWrongKey =
    "wrong key: the two sides are not of one job; its tasks all want the same MUSTER_KEY_FILE";

// A message that came, envelope and all.
struct Incoming {
  HandshakeKind kind = HandshakeKind::kVerdict;
  std::string bytes;
  std::string_view body() const { return std::string_view(bytes).substr(kEnvelopeBytes); }
};

// One side of the handshake: the messages that it sends and reads, under one deadline.
class Conversation {
 public:
  Conversation(Stream* stream, const Identity* self, Deadline deadline, const Interrupt* interrupt)
      : stream_(*stream), self_(*self), deadline_(deadline), interrupt_(*interrupt) {}

  absl::Status Send(std::string_view bytes);
  // UNAVAILABLE and so on; a refusal that came instead is returned as the peer's status.
  absl::StatusOr<Incoming> Receive(HandshakeKind expected);
  // Tells the peer, if that is possible now, and returns `why`.
  absl::Status Refuse(const absl::Status& why) {
    Send(EncodeVerdict(why)).IgnoreError();
    return why;
  }
  // Sends zeros after this side's last message of a good handshake, so that its frames begin at a
  // multiple of 8 of all that it sends, as their readers want them (frame_reader.cc).
  absl::Status SendPadding() { return Send(std::string(-sent_ % kFrameAlignment, '\0')); }
  absl::Status ReadPadding();
  absl::Status CheckJob(const Identity& peer);
  void AgreeOnChecksums(const Hello& theirs) {
    stream_.set_wants_checksums(stream_.wants_checksums() || theirs.wants_checksums);
  }
  absl::StatusOr<Hello> MakeHello(const std::string& service) const;
  // What proofs are made over, before the first message: nothing without TLS.
  std::string binding() const { return stream_.binding(); }

 private:
  absl::Status ReadExactly(std::string* to, size_t size);
  absl::Status Wait(bool read) {
    const Awaited one = {.stream = &stream_, .read = read, .write = !read};
    const absl::Status status = WaitFor({&one, 1}, deadline_, interrupt_);
    if (status.ok() || interrupt_.is_set()) return status;
    return Annotate(status, StrCat("waiting for ", stream_.peer()));
  }

  Stream& stream_;
  const Identity& self_;
  const Deadline deadline_;
  const Interrupt& interrupt_;
  size_t sent_ = 0, read_ = 0;  // bytes
};

absl::Status Conversation::Send(std::string_view bytes) {
  ConstBytes left = std::as_bytes(std::span(bytes));
  while (!left.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const size_t went, stream_.Write({&left, 1}));
    left = left.subspan(went);
    sent_ += went;
    if (went == 0) MUSTER_RETURN_IF_ERROR(Wait(false));
  }
  return absl::OkStatus();
}

absl::Status Conversation::ReadExactly(std::string* to, size_t size) {
  size_t have = to->size();
  to->resize(have + size);
  const MutableBytes all = std::as_writable_bytes(std::span(*to));
  while (have < all.size()) {
    MUSTER_ASSIGN_OR_RETURN(const size_t n, stream_.Read(all.subspan(have)));
    have += n;
    read_ += n;
    if (n == 0) MUSTER_RETURN_IF_ERROR(Wait(true));
  }
  return absl::OkStatus();
}

absl::StatusOr<Incoming> Conversation::Receive(HandshakeKind expected) {
  Incoming incoming;
  MUSTER_RETURN_IF_ERROR(ReadExactly(&incoming.bytes, kEnvelopeBytes));
  absl::StatusOr<Envelope> envelope = DecodeEnvelope(incoming.bytes);
  if (!envelope.ok()) return Annotate(envelope.status(), stream_.peer());
  if (envelope->version != kProtocolVersion) {
    return Refuse(absl::FailedPreconditionError(
        StrCat("version ", envelope->version, " of the protocol and version ", kProtocolVersion,
               " meet: use one Muster for the whole job")));
  }
  MUSTER_RETURN_IF_ERROR(ReadExactly(&incoming.bytes, envelope->body_bytes));
  incoming.kind = envelope->kind;
  if (incoming.kind == expected) return incoming;
  if (incoming.kind == HandshakeKind::kVerdict) {
    const absl::Status verdict = DecodeVerdict(incoming.body());
    if (!verdict.ok()) return verdict;
  }
  return absl::DataLossError(StrCat(stream_.peer(), " sends message ",
                                    static_cast<int>(incoming.kind), " where ",
                                    static_cast<int>(expected), " of the handshake was due"));
}

absl::Status Conversation::ReadPadding() {
  std::string zeros;
  MUSTER_RETURN_IF_ERROR(ReadExactly(&zeros, -read_ % kFrameAlignment));
  if (zeros.find_first_not_of('\0') == std::string::npos) return absl::OkStatus();
  return absl::DataLossError(StrCat(stream_.peer(), " sends more than the handshake"));
}

absl::Status Conversation::CheckJob(const Identity& peer) {
  if (peer.job == self_.job) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("job '", Printable(peer.job), "' and job '",
                                              Printable(self_.job),
                                              "' meet: an address of one is used in the other"));
}

absl::StatusOr<Hello> Conversation::MakeHello(const std::string& service) const {
  MUSTER_RETURN_IF_ERROR(CheckNames(self_, service));
  Hello hello = {
      .identity = self_, .service = service, .wants_checksums = stream_.wants_checksums()};
  if (getrandom(hello.nonce.data(), hello.nonce.size(), 0) !=
      static_cast<ssize_t>(hello.nonce.size())) {
    return ErrnoStatus(errno, "random bytes from the operating system");
  }
  return hello;
}

absl::StatusOr<Peer> DialSide(Conversation& talk, const Token& key, const std::string& service) {
  MUSTER_ASSIGN_OR_RETURN(const Hello ours, talk.MakeHello(service));
  const std::string hello = EncodeMessage(HandshakeKind::kDialHello, EncodeHello(ours));
  MUSTER_RETURN_IF_ERROR(talk.Send(hello));
  std::string transcript = talk.binding() + hello;

  MUSTER_ASSIGN_OR_RETURN(const Incoming answer, talk.Receive(HandshakeKind::kAcceptHello));
  if (answer.body().size() < kProofBytes) {
    return absl::DataLossError("the handshake's answer has no proof");
  }
  const size_t claims = answer.bytes.size() - kProofBytes;
  MUSTER_ASSIGN_OR_RETURN(const Hello theirs,
                          DecodeHello(answer.body().substr(0, answer.body().size() - kProofBytes)));
  if (const absl::Status job = talk.CheckJob(theirs.identity); !job.ok()) return talk.Refuse(job);
  transcript.append(answer.bytes, 0, claims);
  const std::string_view proof = std::string_view(answer.bytes).substr(claims);
  if (!SameProof(proof, Proof(key, kAcceptLabel, transcript))) {
    return talk.Refuse(absl::UnauthenticatedError(ToAbsl(kWrongKey)));
  }
  transcript.append(proof);
  MUSTER_RETURN_IF_ERROR(
      talk.Send(EncodeMessage(HandshakeKind::kDialProof, Proof(key, kDialLabel, transcript))));
  MUSTER_RETURN_IF_ERROR(talk.SendPadding());
  MUSTER_ASSIGN_OR_RETURN(const Incoming verdict, talk.Receive(HandshakeKind::kVerdict));
  MUSTER_RETURN_IF_ERROR(DecodeVerdict(verdict.body()));
  MUSTER_RETURN_IF_ERROR(talk.ReadPadding());
  talk.AgreeOnChecksums(theirs);
  return Peer{.identity = theirs.identity};
}

absl::StatusOr<Peer> AcceptSide(Conversation& talk, const Token& key, const Admit& admit) {
  MUSTER_ASSIGN_OR_RETURN(const Incoming asked, talk.Receive(HandshakeKind::kDialHello));
  MUSTER_ASSIGN_OR_RETURN(const Hello theirs, DecodeHello(asked.body()));
  if (const absl::Status job = talk.CheckJob(theirs.identity); !job.ok()) return talk.Refuse(job);

  MUSTER_ASSIGN_OR_RETURN(const Hello ours, talk.MakeHello(""));
  std::string body = EncodeHello(ours);
  body.resize(body.size() + kProofBytes);  // for the envelope's length
  std::string answer = EncodeMessage(HandshakeKind::kAcceptHello, body);
  answer.resize(answer.size() - kProofBytes);
  const std::string before = talk.binding() + asked.bytes;
  answer += Proof(key, kAcceptLabel, before + answer);
  MUSTER_RETURN_IF_ERROR(talk.Send(answer));

  MUSTER_ASSIGN_OR_RETURN(const Incoming proof, talk.Receive(HandshakeKind::kDialProof));
  if (!SameProof(proof.body(), Proof(key, kDialLabel, before + answer))) {
    return talk.Refuse(absl::UnauthenticatedError(ToAbsl(kWrongKey)));
  }
  Peer peer = {.identity = theirs.identity, .service = theirs.service};
  if (admit) {
    if (const absl::Status refused = admit(peer); !refused.ok()) return talk.Refuse(refused);
  }
  MUSTER_RETURN_IF_ERROR(talk.ReadPadding());
  MUSTER_RETURN_IF_ERROR(talk.Send(EncodeVerdict(absl::OkStatus())));
  MUSTER_RETURN_IF_ERROR(talk.SendPadding());
  talk.AgreeOnChecksums(theirs);
  return peer;
}

}  // namespace

std::string ShortName(const Identity& identity) {
  return StrCat(identity.role, " ", identity.index);
}

absl::StatusOr<Peer> DialHandshake(Stream& stream, const Token& key, const Identity& self,
                                   const std::string& service, Deadline deadline,
                                   const Interrupt& interrupt) {
  Conversation talk(&stream, &self, deadline, &interrupt);
  absl::StatusOr<Peer> peer = DialSide(talk, key, service);
  if (peer.ok() || interrupt.is_set()) return peer;
  return Annotate(peer.status(), StrCat("handshake with ", stream.peer()));
}

absl::StatusOr<Peer> AcceptHandshake(Stream& stream, const Token& key, const Identity& self,
                                     const Admit& admit, Deadline deadline,
                                     const Interrupt& interrupt) {
  Conversation talk(&stream, &self, deadline, &interrupt);
  absl::StatusOr<Peer> peer = AcceptSide(talk, key, admit);
  if (peer.ok() || interrupt.is_set()) return peer;
  return Annotate(peer.status(), StrCat("handshake with ", stream.peer()));
}

}  // namespace muster::net::transport
