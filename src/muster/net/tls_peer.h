// What an end of a TLS connection asks OpenSSL about the other.
#pragma once

#include <string>

#include "muster/base/status.h"

struct ssl_st;  // OpenSSL's SSL

namespace muster::net::internal {

// The certificate must be for `host`, a name or an address in numbers. INVALID_ARGUMENT for what is
// neither.
absl::Status ExpectHost(ssl_st* ssl, const std::string& host);

// Why the other's certificate is not believed; empty when it is, or none came.
std::string DistrustOf(const ssl_st* ssl);

// The alert with which the other gave up, of an OpenSSL error code; -1: it is none.
int TlsAlertOf(unsigned long code);
// Whether the other gave up for this end's certificate, or for want of one.
bool IsCertificateAlert(int alert);

}  // namespace muster::net::internal
