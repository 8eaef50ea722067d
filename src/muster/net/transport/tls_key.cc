#include "muster/net/transport/tls_key.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <utility>

namespace muster::net::transport {
namespace {

constexpr size_t kIvBytes = 12;

bool UsesSha384(uint16_t suite) { return suite == kAes256Suite; }

size_t GetHashBytes(uint16_t suite) {
  if (suite != kAes128Suite && suite != kAes256Suite && suite != kChaCha20Suite) return 0;
  return UsesSha384(suite) ? 48 : 32;
}

struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

void Overwrite(std::string& secret) { OPENSSL_cleanse(secret.data(), secret.size()); }

}  // namespace

TlsKey::~TlsKey() {
  Overwrite(key);
  Overwrite(iv);
}

TlsSecret::TlsSecret(uint16_t suite, std::string bytes) : suite_(suite) {
  if (!bytes.empty() && bytes.size() == GetHashBytes(suite)) bytes_ = std::move(bytes);
}

TlsSecret::~TlsSecret() { Overwrite(bytes_); }

TlsSecret& TlsSecret::operator=(TlsSecret&& other) noexcept {
  Overwrite(bytes_);
  suite_ = other.suite_;
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

// HKDF-Expand-Label with an empty context.
absl::StatusOr<std::string> TlsSecret::Expand(std::string_view label, size_t bytes) const {
  const std::unique_ptr<EVP_KDF, FreeKdf> kdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_TLS1_3_KDF, nullptr));
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(kdf == nullptr ? nullptr
                                                                     : EVP_KDF_CTX_new(kdf.get()));
  constexpr std::string_view kPrefix = "tls13 ";
  const auto octets = [](const char* name, std::string_view value) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(value.data()), value.size());
  };
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  std::string hash = UsesSha384(suite_) ? "SHA384" : "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash.data(), 0),
      octets(OSSL_KDF_PARAM_KEY, bytes_),
      octets(OSSL_KDF_PARAM_PREFIX, kPrefix),
      octets(OSSL_KDF_PARAM_LABEL, label),
      OSSL_PARAM_construct_end()};
  std::string out(bytes, '\0');
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(),
                     parameters) != 1) {
    ERR_clear_error();
    return absl::InternalError("TLS: OpenSSL derives no key");
  }
  return out;
}

absl::Status TlsSecret::Advance() {
  MUSTER_ASSIGN_OR_RETURN(std::string next, Expand("traffic upd", bytes_.size()));
  Overwrite(bytes_);
  bytes_ = std::move(next);
  return absl::OkStatus();
}

absl::StatusOr<TlsKey> TlsSecret::MakeKey() const {
  TlsKey made;
  made.suite = suite_;
  MUSTER_ASSIGN_OR_RETURN(made.key, Expand("key", suite_ == kAes128Suite ? 16 : 32));
  MUSTER_ASSIGN_OR_RETURN(made.iv, Expand("iv", kIvBytes));
  return made;
}

}  // namespace muster::net::transport
