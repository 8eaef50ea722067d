// Spnego: tells an HTTP server who calls, by the Kerberos ticket of this process's user (RFC 4559,
// "Authorization: Negotiate"). The ticket is what kinit got, or one that the Kerberos library gets
// itself by the keytab in KRB5_CLIENT_KTNAME.
#pragma once

#include <memory>
#include <string>

#include "muster/base/status.h"

namespace muster::files {

// Any thread.
class Spnego {
 public:
  // Loads libgssapi_krb5.so.2, which only this needs. FAILED_PRECONDITION, which names the package,
  // if it is not installed.
  static absl::StatusOr<std::unique_ptr<Spnego>> Load();
  ~Spnego();
  Spnego(const Spnego&) = delete;
  Spnego& operator=(const Spnego&) = delete;

  // Makes the value of an Authorization field for the service HTTP of `host`; it serves for one
  // call. UNAUTHENTICATED, with what Kerberos says and what to do, if there is no valid ticket or
  // the realm does not know the host.
  absl::StatusOr<std::string> MakeAuthorization(const std::string& host) const;

 private:
  struct Library;
  explicit Spnego(std::unique_ptr<Library> library);
  absl::Status Explain(const std::string& host, uint32_t major, uint32_t minor) const;

  const std::unique_ptr<Library> library_;
};

// The host whose service is asked: "namenode" of "https://namenode:9871", "::1" of
// "http://[::1]:9870".
std::string GetServiceHost(const std::string& url);

}  // namespace muster::files
