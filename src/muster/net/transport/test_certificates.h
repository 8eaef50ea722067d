// For tests: certificates whose time has come, or has not.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>

#include "muster/net/tls/certs.h"

namespace muster::net::transport {

template <typename Read>
auto FromPem(const std::string& text, Read read) {
  BIO* const bio = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  auto* const found = read(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return found;
}

// The same certificate, valid between these seconds from now.
inline Credentials WithLife(const Credentials& authority, Credentials credentials, long from,
                            long to) {
  X509* const certificate = FromPem(credentials.certificate, PEM_read_bio_X509);
  EVP_PKEY* const key = FromPem(authority.key, PEM_read_bio_PrivateKey);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), to);
  EXPECT_NE(X509_sign(certificate, key, EVP_sha256()), 0);
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  credentials.certificate.assign(data, static_cast<size_t>(size));
  BIO_free(bio);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return credentials;
}

}  // namespace muster::net::transport
