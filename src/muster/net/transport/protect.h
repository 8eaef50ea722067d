// TLS for connections that leave the machine; plain text only on request.
//
// Nothing is negotiated, so that no man in the middle can downgrade a connection: each side decides
// by its own Protection and by where the other end is. A stream that wants checksums (stream.h)
// leads to another machine.
#pragma once

#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls.h"
#include "muster/process/deadline.h"

namespace muster::net::transport {

// Both take a TCP connection on which nothing was read or written yet and return the stream to use
// from then on. FAILED_PRECONDITION: only one side uses TLS, or plain text was not requested; the
// accepting side informs the peer. Other errors are those of TlsStream.
absl::StatusOr<std::unique_ptr<Stream>> ProtectDialed(std::unique_ptr<Stream> stream,
                                                      const std::string& host,
                                                      const Protection& protection,
                                                      process::Deadline deadline,
                                                      const Interrupt& interrupt);
// Waits for the peer's first byte.
absl::StatusOr<std::unique_ptr<Stream>> ProtectAccepted(std::unique_ptr<Stream> stream,
                                                        const Protection& protection,
                                                        process::Deadline deadline,
                                                        const Interrupt& interrupt);

}  // namespace muster::net::transport
