// Queries to OpenSSL about the other end of a TLS connection.
#pragma once

#include <string>

#include "muster/base/status.h"

struct ssl_st;  // OpenSSL's SSL

namespace muster::net::internal {

// Requires the peer's certificate to be for `host`, a name or a numeric address. INVALID_ARGUMENT
// for text that is neither.
absl::Status ExpectHost(ssl_st* ssl, const std::string& host);

// Why the peer's certificate is not trusted; empty if it is, or if the peer presented none.
std::string GetDistrust(const ssl_st* ssl);

// The alert with which the peer gave up, from an OpenSSL error code; -1 if the code is not an
// alert.
int GetTlsAlert(unsigned long code);
// Whether the peer gave up because of this end's certificate or its absence.
bool IsCertificateAlert(int alert);

// When this end's certificate expired, as in "Nov  3 10:00:00 2026 GMT"; empty if it has not.
std::string GetOwnExpiry(const ssl_st* ssl);

}  // namespace muster::net::internal
