// Records of TLS 1.3 that the kernel encrypts as they are sent (Documentation/networking/tls.rst).
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls_key.h"

namespace muster::net::transport {

// Whether this kernel encrypts TLS 1.3 and takes a next key, without which a connection could not
// go on after AES-GCM's limit: Linux 6.14 and later, with the module tls. Looks once; thread-safe.
bool KernelChangesTlsKeys();

// Encrypts by this key what is sent over the TCP socket from now on. UNAVAILABLE if the connection
// has ended, FAILED_PRECONDITION if the kernel refuses for another reason, INTERNAL for a key that
// is none of its suite.
absl::Status SetKernelTlsKey(int socket, const TlsKey& key, const std::string& peer);

// Sends a record of this type, kAlertRecord or kHandshakeRecord, after what was sent, over a socket
// that has a key. False: there was no room for it for so many seconds. `seconds` > 0 also waits
// until the socket's buffer has all that was sent before, of which the kernel may hold a part, that
// it drops when the socket is closed; the socket waits from then on. UNAVAILABLE: the peer is gone.
absl::StatusOr<bool> SendKernelTlsRecord(int socket, uint8_t type, ConstBytes record,
                                         double seconds, const std::string& peer);

}  // namespace muster::net::transport
