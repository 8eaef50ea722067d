// TLS where a connection leaves the machine, and nothing in plain text that nobody asked for.
//
// Nothing of it is negotiated, so that nobody on the way can talk two tasks out of it: each side
// goes by its own Protection and by where the other end is. A stream that wants checksums
// (stream.h) is one to another machine.
#pragma once

#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls.h"
#include "muster/process/deadline.h"

namespace muster::net::transport {

// Both, of a TCP connection of which nothing was read or written yet: the stream to go on with.
// FAILED_PRECONDITION: one side speaks TLS and the other does not, or plain text was not asked for;
// the accepting side tells the peer. Else the errors of TlsStream.
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
