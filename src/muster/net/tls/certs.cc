#include "muster/net/tls/certs.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/net/secret_file.h"

namespace muster::net {
namespace {

constexpr int kMaxDays = 3650;
constexpr size_t kMaxNameBytes = 64;  // RFC 5280, ub-common-name
constexpr long kEarlierSeconds = 300;
constexpr long kDaySeconds = 86400;
constexpr int kSerialBits = 159;  // RFC 5280: at most 20 bytes, positive

struct OpensslDelete {
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, OpensslDelete>;

// OpenSSL's queue of errors may quote its input, so none of it goes into the message.
absl::Status OpensslError(std::string_view what) {
  ERR_clear_error();
  return absl::InternalError(StrCat("make a certificate: OpenSSL fails at ", what));
}

absl::StatusOr<std::string> BioText(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  if (size <= 0) return OpensslError("PEM");
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<std::string> KeyToPem(EVP_PKEY* key) {
  const Owned<BIO> bio(BIO_new(BIO_s_secmem()));
  if (!bio ||
      PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpensslError("PEM");
  }
  return BioText(bio.get());
}

absl::StatusOr<std::string> ToPem(X509* certificate) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1) return OpensslError("PEM");
  return BioText(bio.get());
}

absl::StatusOr<Credentials> ToPem(X509* certificate, EVP_PKEY* key) {
  Credentials credentials;
  MUSTER_ASSIGN_OR_RETURN(credentials.certificate, ToPem(certificate));
  MUSTER_ASSIGN_OR_RETURN(credentials.key, KeyToPem(key));
  return credentials;
}

absl::Status CheckNameAndDays(const std::string& name, int days) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(StrCat("make a certificate: its name has ", name.size(),
                                             " bytes; 1 to ", kMaxNameBytes, " are possible"));
  }
  if (days < 1 || days > kMaxDays) {
    return absl::InvalidArgumentError(StrCat(
        "make a certificate: ", days, " days of validity; 1 to ", kMaxDays, " are possible"));
  }
  return absl::OkStatus();
}

bool IsAddress(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

bool IsDnsName(const std::string& host) {
  return !host.empty() && host.size() <= 253 && host.front() != '.' && host.front() != '-' &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '-';
         });
}

// Written as in OpenSSL's configuration. The characters of a host are checked, so that no host can
// add another one.
absl::StatusOr<std::string> AlternativeNames(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    const bool is_address = IsAddress(host);
    if (!is_address && !IsDnsName(host)) {
      return absl::InvalidArgumentError(
          StrCat("make a certificate: host '", host, "' is neither a DNS name nor an IP address"));
    }
    names += StrCat(names.empty() ? "" : ",", is_address ? "IP:" : "DNS:", host);
  }
  return names;
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpensslError(OBJ_nid2sn(nid));
  }
  return absl::OkStatus();
}

bool SetSerial(X509* certificate) {
  const Owned<BIGNUM> serial(BN_new());
  return serial && BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool AddName(X509* certificate, const char* field, const std::string& text) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

absl::StatusOr<Owned<X509>> NewCertificate(const std::string& name, int days, EVP_PKEY* key) {
  Owned<X509> certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      !SetSerial(certificate.get()) ||
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kEarlierSeconds) == nullptr ||
      X509_gmtime_adj(X509_getm_notAfter(certificate.get()), days * kDaySeconds) == nullptr ||
      X509_set_pubkey(certificate.get(), key) != 1 || !AddName(certificate.get(), "CN", name)) {
    return OpensslError("its fields (is the name UTF-8?)");
  }
  return certificate;
}

absl::Status Sign(X509* certificate, X509* issuer, EVP_PKEY* issuer_key) {
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) != 1) {
    return OpensslError("the issuer");
  }
  MUSTER_RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid"));
  if (X509_sign(certificate, issuer_key, EVP_sha256()) == 0) return OpensslError("signing");
  return absl::OkStatus();
}

struct Authority {
  Owned<X509> certificate = {};
  Owned<EVP_PKEY> key = {};
};

// Gives no password, so that an encrypted key is refused and nothing is asked on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

absl::StatusOr<Authority> ParseAuthority(const Credentials& credentials) {
  const Owned<BIO> certificate(BIO_new_mem_buf(credentials.certificate.data(),
                                               static_cast<int>(credentials.certificate.size())));
  const Owned<BIO> key(
      BIO_new_mem_buf(credentials.key.data(), static_cast<int>(credentials.key.size())));
  Authority authority = {
      .certificate =
          Owned<X509>(PEM_read_bio_X509(certificate.get(), nullptr, NoPassword, nullptr)),
      .key = Owned<EVP_PKEY>(PEM_read_bio_PrivateKey(key.get(), nullptr, NoPassword, nullptr))};
  if (!authority.certificate || !authority.key ||
      X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "make a certificate: the authority is no PEM certificate with its own key");
  }
  return authority;
}

absl::StatusOr<Owned<X509>> Certify(EVP_PKEY* key, const Credentials& authority_pem,
                                    const CertificateOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckNameAndDays(options.name, options.days));
  const bool is_server = options.use == CertificateUse::kServer;
  MUSTER_ASSIGN_OR_RETURN(const std::string names, AlternativeNames(options.hosts));
  if (is_server && names.empty()) {
    return absl::InvalidArgumentError(
        "make a server's certificate: give the names or addresses by which clients reach it");
  }
  MUSTER_ASSIGN_OR_RETURN(const Authority authority, ParseAuthority(authority_pem));
  MUSTER_ASSIGN_OR_RETURN(Owned<X509> made, NewCertificate(options.name, options.days, key));
  X509* certificate = made.get();
  X509* issuer = authority.certificate.get();
  MUSTER_RETURN_IF_ERROR(
      AddExtension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  MUSTER_RETURN_IF_ERROR(
      AddExtension(certificate, issuer, NID_key_usage, "critical,digitalSignature"));
  MUSTER_RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_ext_key_usage,
                                      is_server ? "serverAuth" : "clientAuth"));
  if (!names.empty()) {
    MUSTER_RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_subject_alt_name, names));
  }
  MUSTER_RETURN_IF_ERROR(Sign(certificate, issuer, authority.key.get()));
  return made;
}

absl::StatusOr<Owned<EVP_PKEY>> MakeKey() {
  Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (!key) return OpensslError("a key");
  return key;
}

}  // namespace

absl::StatusOr<Credentials> MakeAuthority(const std::string& name, int days) {
  MUSTER_RETURN_IF_ERROR(CheckNameAndDays(name, days));
  MUSTER_ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key, MakeKey());
  MUSTER_ASSIGN_OR_RETURN(const Owned<X509> made, NewCertificate(name, days, key.get()));
  X509* certificate = made.get();
  // A certificate of the job's own name must not look as if it were self-signed.
  if (!AddName(certificate, "OU", "authority")) return OpensslError("the authority's name");
  MUSTER_RETURN_IF_ERROR(
      AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  MUSTER_RETURN_IF_ERROR(
      AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign"));
  MUSTER_RETURN_IF_ERROR(
      AddExtension(certificate, certificate, NID_subject_key_identifier, "hash"));
  MUSTER_RETURN_IF_ERROR(Sign(certificate, certificate, key.get()));
  return ToPem(certificate, key.get());
}

absl::StatusOr<Credentials> MakeCertificate(const Credentials& authority_pem,
                                            const CertificateOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key, MakeKey());
  MUSTER_ASSIGN_OR_RETURN(const Owned<X509> made, Certify(key.get(), authority_pem, options));
  return ToPem(made.get(), key.get());
}

absl::StatusOr<KeyPair> MakeKeyPair() {
  MUSTER_ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key, MakeKey());
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PUBKEY(bio.get(), key.get()) != 1) return OpensslError("PEM");
  KeyPair pair;
  MUSTER_ASSIGN_OR_RETURN(pair.public_key, BioText(bio.get()));
  MUSTER_ASSIGN_OR_RETURN(pair.key, KeyToPem(key.get()));
  return pair;
}

absl::StatusOr<std::string> MakeCertificateFor(const std::string& public_key,
                                               const Credentials& authority,
                                               const CertificateOptions& options) {
  const Owned<BIO> bio(BIO_new_mem_buf(public_key.data(), static_cast<int>(public_key.size())));
  const Owned<EVP_PKEY> key(PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassword, nullptr));
  if (!key || EVP_PKEY_is_a(key.get(), "EC") != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("make a certificate: the public key is no PEM of an EC key");
  }
  MUSTER_ASSIGN_OR_RETURN(const Owned<X509> made, Certify(key.get(), authority, options));
  return ToPem(made.get());
}

absl::Status WriteCredentials(const std::string& folder, const std::string& name,
                              const Credentials& credentials) {
  MUSTER_RETURN_IF_ERROR(WriteSecretFile(StrCat(folder, "/", name, "-key.pem"), credentials.key));
  return WriteSecretFile(StrCat(folder, "/", name, ".pem"), credentials.certificate);
}

absl::StatusOr<Credentials> ReadCredentials(const std::string& folder, const std::string& name) {
  Credentials credentials;
  MUSTER_ASSIGN_OR_RETURN(credentials.certificate,
                          ReadSecretFile(StrCat(folder, "/", name, ".pem")));
  MUSTER_ASSIGN_OR_RETURN(credentials.key, ReadSecretFile(StrCat(folder, "/", name, "-key.pem")));
  return credentials;
}

absl::Status MakeJobCertificates(const std::string& folder, const std::string& job,
                                 const std::vector<std::string>& hosts, int days) {
  MUSTER_ASSIGN_OR_RETURN(const Credentials authority, MakeAuthority(job, days));
  MUSTER_ASSIGN_OR_RETURN(const Credentials server,
                          MakeCertificate(authority, {.name = job, .hosts = hosts, .days = days}));
  MUSTER_ASSIGN_OR_RETURN(
      const Credentials client,
      MakeCertificate(authority, {.name = job, .use = CertificateUse::kClient, .days = days}));
  MUSTER_RETURN_IF_ERROR(WriteCredentials(folder, "ca", authority));
  MUSTER_RETURN_IF_ERROR(WriteCredentials(folder, "server", server));
  return WriteCredentials(folder, "client", client);
}

}  // namespace muster::net
