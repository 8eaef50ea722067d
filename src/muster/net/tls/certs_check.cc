// Checks that certificates can be used, before a job is started with them.
#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "muster/net/tls/certs.h"

namespace muster::net {
namespace {

template <typename T, void (*kFree)(T*)>
struct FreeWith {
  void operator()(T* p) const { kFree(p); }
};
using CertificateRef = std::unique_ptr<X509, FreeWith<X509, X509_free>>;
using KeyRef = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY, EVP_PKEY_free>>;
using StoreRef = std::unique_ptr<X509_STORE, FreeWith<X509_STORE, X509_STORE_free>>;
using CheckRef = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX, X509_STORE_CTX_free>>;

// Gives no password, so that an encrypted key is refused and nothing is asked on the terminal.
int RefusePassword(char*, int, int, void*) { return 0; }

template <typename Read>
auto ReadPem(const std::string& text, Read read) {
  BIO* const bio = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  auto* const found = read(bio, nullptr, RefusePassword, nullptr);
  BIO_free(bio);
  ERR_clear_error();
  return found;
}

absl::StatusOr<CertificateRef> ParseCertificate(const std::string& pem, std::string_view what) {
  CertificateRef certificate(ReadPem(pem, PEM_read_bio_X509));
  if (certificate == nullptr) {
    return absl::FailedPreconditionError(StrCat("the ", what, " is no PEM certificate"));
  }
  return certificate;
}

bool IsNumber(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

// Checks the certificate of a `role`, "server" or "client", for this X509_PURPOSE_. `host`: of a
// server, else "".
absl::Status CheckCertificate(const std::string& authority, const std::string& certificate,
                              std::string_view role, int purpose, const std::string& host) {
  MUSTER_ASSIGN_OR_RETURN(const CertificateRef root, ParseCertificate(authority, "authority"));
  MUSTER_ASSIGN_OR_RETURN(const CertificateRef leaf,
                          ParseCertificate(certificate, StrCat(role, "'s certificate")));
  const StoreRef store(X509_STORE_new());
  const CheckRef check(X509_STORE_CTX_new());
  if (store == nullptr || check == nullptr || X509_STORE_add_cert(store.get(), root.get()) != 1 ||
      X509_STORE_CTX_init(check.get(), store.get(), leaf.get(), nullptr) != 1 ||
      X509_STORE_CTX_set_purpose(check.get(), purpose) != 1) {
    ERR_clear_error();
    return absl::InternalError("check a certificate: OpenSSL fails");
  }
  X509_VERIFY_PARAM* const wanted = X509_STORE_CTX_get0_param(check.get());
  int set = 1;
  if (IsNumber(host)) {
    set = X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str());
  } else if (!host.empty()) {
    set = X509_VERIFY_PARAM_set1_host(wanted, host.data(), host.size());
  }
  if (set == 1 && X509_verify_cert(check.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(check.get());
  ERR_clear_error();
  return absl::FailedPreconditionError(StrCat("the ", role, "'s certificate will not be believed",
                                              host.empty() ? "" : " at ", host, ": ",
                                              X509_verify_cert_error_string(error)));
}

}  // namespace

absl::Status CheckServerCertificate(const std::string& authority, const std::string& certificate,
                                    const std::string& host) {
  return CheckCertificate(authority, certificate, "server", X509_PURPOSE_SSL_SERVER, host);
}

absl::Status CheckClientCertificate(const std::string& authority, const std::string& certificate) {
  return CheckCertificate(authority, certificate, "client", X509_PURPOSE_SSL_CLIENT, "");
}

absl::Status CheckKey(const Credentials& credentials) {
  MUSTER_ASSIGN_OR_RETURN(const CertificateRef certificate,
                          ParseCertificate(credentials.certificate, "server's certificate"));
  const KeyRef key(ReadPem(credentials.key, PEM_read_bio_PrivateKey));
  const bool fits = key != nullptr && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (fits) return absl::OkStatus();
  return absl::FailedPreconditionError("the key is not that of the server's certificate");
}

}  // namespace muster::net
