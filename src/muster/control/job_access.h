// How the programs of one job reach its coordinator and trust each other: its listening address,
// the token and, beyond loopback, TLS with the job's own certificate authority. See
// docs/security.md.
#pragma once

#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/net/http/client.h"
#include "muster/net/http/server.h"

namespace muster::control {

struct ListenPlace {
  std::string address = "127.0.0.1";  // numeric; 0.0.0.0 and :: for all interfaces
  int port = 0;                       // 0: any
  bool tls = false;
  friend bool operator==(const ListenPlace&, const ListenPlace&) = default;
};

// "10.0.0.5", "10.0.0.5:7000", "::1", "[::1]:7000". INVALID_ARGUMENT for text that is not a numeric
// address and, without `tls`, for an address that other machines can reach: the message says what
// to do.
absl::StatusOr<ListenPlace> ParseListenPlace(const std::string& text, bool tls);
// Text that ParseListenPlace() parses back to `place`.
std::string PrintListenPlace(const ListenPlace& place);

// Copies what a job needs from the folder `certificates`, which `muster certs` made, into the job's
// folder: the authority's certificate and the server's certificate with its key, but never the
// authority's key. FAILED_PRECONDITION if clients would not trust the certificate at the address of
// `place`, NOT_FOUND if there are no certificates. Both are detected before anything starts.
absl::Status UseCertificates(const std::string& certificates, const ListenPlace& place,
                             const JobFolder& folder);
// Makes the checks of UseCertificates() and copies nothing.
absl::Status CheckCertificates(const std::string& certificates, const ListenPlace& place);

// Server options with the job's token and, if `place` uses TLS, its certificate.
absl::StatusOr<net::HttpServerOptions> ServerOptions(const JobFolder& folder,
                                                     const ListenPlace& place);
// Options for a client of the coordinator at `url`, on this machine: with the token and, for https,
// with the job's authority, the only one that is trusted.
absl::StatusOr<net::HttpClientOptions> ClientOptions(const JobFolder& folder,
                                                     const std::string& url);

// The address at which programs on this machine reach the coordinator: 127.0.0.1 for 0.0.0.0, ::1
// for ::.
std::string LocalAddress(const ListenPlace& place);
std::string LocalUrl(const ListenPlace& place, int port);

}  // namespace muster::control
