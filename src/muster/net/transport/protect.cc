#include "muster/net/transport/protect.h"

#include <utility>

#include "muster/net/transport/handshake_message.h"
#include "muster/net/transport/tls_stream.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using process::Deadline;

constexpr std::byte kTlsHandshake{22};  // the type of a client's first record

bool IsFar(const Stream& stream, const Protection& protection) {
  return stream.wants_checksums() || protection.within_machine;
}

std::string HowToBeSafe() {
  return StrCat("give all tasks the certificates of one run of muster certs (", kCertsVariable,
                "), or, on a network that you trust, ask all for plain text (", kPlainTextVariable,
                "=1)");
}

absl::Status NoPlainText(const Stream& stream) {
  return absl::FailedPreconditionError(
      StrCat(stream.peer(),
             " is another machine, and nothing says how the connection there is "
             "protected: ",
             HowToBeSafe()));
}

absl::StatusOr<std::byte> FirstByte(Stream& stream, Deadline deadline, const Interrupt& interrupt) {
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const ConstBytes there, stream.Peek());
    if (!there.empty()) return there.front();
    const Awaited one = {.stream = &stream, .read = true};
    const absl::Status status = WaitFor({&one, 1}, deadline, interrupt);
    if (interrupt.is_set()) return status;
    if (!status.ok()) return Annotate(status, StrCat("waiting for ", stream.peer()));
  }
}

// Tells the peer, if that is possible now.
absl::Status Refuse(Stream& stream, const absl::Status& why) {
  const std::string verdict = EncodeVerdict(why);
  const ConstBytes piece = std::as_bytes(std::span(verdict));
  stream.Write({&piece, 1}).status().IgnoreError();
  return why;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> ProtectDialed(std::unique_ptr<Stream> stream,
                                                      const std::string& host,
                                                      const Protection& protection,
                                                      Deadline deadline,
                                                      const Interrupt& interrupt) {
  if (!IsFar(*stream, protection)) return stream;
  if (protection.tls != nullptr) {
    return TlsStream::Dialed(std::move(stream), protection.tls, host, deadline, interrupt);
  }
  if (!protection.plain_text) return NoPlainText(*stream);
  return stream;
}

absl::StatusOr<std::unique_ptr<Stream>> ProtectAccepted(std::unique_ptr<Stream> stream,
                                                        const Protection& protection,
                                                        Deadline deadline,
                                                        const Interrupt& interrupt) {
  MUSTER_ASSIGN_OR_RETURN(const std::byte first, FirstByte(*stream, deadline, interrupt));
  const bool by_tls = first == kTlsHandshake;
  if (by_tls && protection.tls != nullptr) {
    return TlsStream::Accepted(std::move(stream), protection.tls, deadline, interrupt);
  }
  if (by_tls) {
    return Refuse(*stream,
                  absl::FailedPreconditionError(StrCat(
                      "TLS and plain text meet: ", stream->peer(),
                      " dials by TLS, and the task there has no certificates; ", HowToBeSafe())));
  }
  if (!IsFar(*stream, protection)) return stream;
  if (protection.tls != nullptr) {
    return Refuse(*stream,
                  absl::FailedPreconditionError(StrCat(
                      "TLS and plain text meet: ", stream->peer(),
                      " dials in plain text, and the task there, of ", protection.tls->authority(),
                      ", takes TLS alone from other machines; ", HowToBeSafe())));
  }
  if (!protection.plain_text) return Refuse(*stream, NoPlainText(*stream));
  return stream;
}

}  // namespace muster::net::transport
