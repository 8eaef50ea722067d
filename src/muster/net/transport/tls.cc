#include "muster/net/transport/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include <boost/asio/ssl/context.hpp>

#include "muster/net/secret_file.h"
#include "muster/net/tls/tls_context.h"
#include "muster/net/transport/handshake_message.h"
#include "muster/net/transport/kernel_tls.h"
#include "muster/net/transport/tls_stream.h"

namespace muster::net::transport {
namespace {

using ContextPtr = std::unique_ptr<boost::asio::ssl::context>;

constexpr int kShownKeyBytes = 4;
// The accepting side takes the first of these that it knows. The fastest one is in front, and is
// as good as the others.
constexpr char kCiphers[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr char kAdvice[] =
    "; muster certs --out FOLDER --host ADDRESS, with --host for each machine of the training, "
    "makes them for all its tasks";

constexpr char kNoKernelTls[] =
    "MUSTER_KERNEL_TLS is set, but this kernel cannot encrypt TLS and change its keys: that takes "
    "Linux 6.14 or later with its module tls (as root: modprobe tls); or leave the variable out, "
    "and OpenSSL encrypts";

std::string AuthorityName(const X509_NAME* name, const ASN1_OCTET_STRING* key) {
  std::string common(256, '\0');
  const int size = X509_NAME_get_text_by_NID(const_cast<X509_NAME*>(name), NID_commonName,
                                             common.data(), static_cast<int>(common.size()));
  common.resize(static_cast<size_t>(std::max(size, 0)));
  std::string text = StrCat("authority '", Printable(common), "'");
  if (key == nullptr) return text;
  const std::string bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(key)),
                          static_cast<size_t>(std::min(ASN1_STRING_length(key), kShownKeyBytes)));
  return StrCat(text, " ", absl::BytesToHexString(bytes));
}

// Of a certificate that is one: a context has taken it.
std::string GetName(const std::string& authority) {
  BIO* const bio = BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size()));
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  ERR_clear_error();
  if (certificate == nullptr) return "an authority";
  std::string name =
      AuthorityName(X509_get_subject_name(certificate), X509_get0_subject_key_id(certificate));
  X509_free(certificate);
  return name;
}

absl::Status WithAdvice(const absl::Status& status, const std::string& folder) {
  return absl::Status(status.code(),
                      StrCat("certificates in ", folder, ": ", ToStd(status.message()), kAdvice));
}

}  // namespace

struct Tls::Contexts {
  ContextPtr server, client;
};

std::string IssuerName(x509_st* certificate) {
  return AuthorityName(X509_get_issuer_name(certificate), X509_get0_authority_key_id(certificate));
}

Tls::Tls(std::unique_ptr<const Contexts> contexts, std::string authority, const TlsOptions& options)
    : contexts_(std::move(contexts)),
      authority_(std::move(authority)),
      options_(options),
      sessions_(std::make_unique<TlsSessions>()) {}

Tls::~Tls() = default;

absl::StatusOr<std::shared_ptr<const Tls>> Tls::Create(const std::string& authority,
                                                       const Credentials& server,
                                                       const Credentials& client,
                                                       const TlsOptions& options) {
  auto contexts = std::make_unique<Contexts>();
  MUSTER_ASSIGN_OR_RETURN(
      contexts->server,
      net::internal::MakeServerContext(
          {.certificate = server.certificate, .key = server.key, .client_authority = authority}));
  MUSTER_ASSIGN_OR_RETURN(
      contexts->client,
      net::internal::MakeClientContext(
          {.authority = authority, .certificate = client.certificate, .key = client.key}));
  TlsSessions::Allow(contexts->server->native_handle());
  if (SSL_CTX_set_ciphersuites(contexts->client->native_handle(), kCiphers) != 1) {
    ERR_clear_error();
    return absl::InternalError("TLS: OpenSSL knows no ciphers of TLS 1.3");
  }
  if (options.by_kernel) {
    TlsStream::KeepSecrets(contexts->server->native_handle());
    TlsStream::KeepSecrets(contexts->client->native_handle());
  }
  return std::shared_ptr<const Tls>(new Tls(std::move(contexts), GetName(authority), options));
}

absl::StatusOr<std::shared_ptr<const Tls>> Tls::Read(const std::string& folder,
                                                     const std::string& host, bool by_kernel) {
  if (by_kernel && !KernelChangesTlsKeys()) return absl::FailedPreconditionError(kNoKernelTls);
  const auto read = [&]() -> absl::StatusOr<std::shared_ptr<const Tls>> {
    MUSTER_ASSIGN_OR_RETURN(const std::string authority,
                            ReadMountedSecretFile(StrCat(folder, "/ca.pem")));
    MUSTER_ASSIGN_OR_RETURN(const Credentials server, ReadCredentials(folder, "server"));
    MUSTER_ASSIGN_OR_RETURN(const Credentials client, ReadCredentials(folder, "client"));
    if (!host.empty()) {
      MUSTER_RETURN_IF_ERROR(CheckServerCertificate(authority, server.certificate, host));
    }
    MUSTER_RETURN_IF_ERROR(CheckClientCertificate(authority, client.certificate));
    return Create(authority, server, client, {.by_kernel = by_kernel});
  };
  auto tls = read();
  return tls.ok() ? std::move(tls) : WithAdvice(tls.status(), folder);
}

ssl_ctx_st* Tls::server() const { return contexts_->server->native_handle(); }
ssl_ctx_st* Tls::client() const { return contexts_->client->native_handle(); }

}  // namespace muster::net::transport
