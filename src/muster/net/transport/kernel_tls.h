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

// Encrypts by this key what is sent from now on. FAILED_PRECONDITION if the kernel refuses.
absl::Status SetKernelTlsKey(int socket, const TlsKey& key);

// Sends a record of this type, kAlertRecord or kHandshakeRecord, after what was sent. False: not
// now, for want of room. UNAVAILABLE: `peer` is gone.
absl::StatusOr<bool> SendKernelTlsRecord(int socket, uint8_t type, ConstBytes record,
                                         const std::string& peer);

}  // namespace muster::net::transport
