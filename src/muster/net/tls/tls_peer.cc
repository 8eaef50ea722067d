#include "muster/net/tls/tls_peer.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "muster/net/listen.h"

namespace muster::net::internal {

absl::Status ExpectHost(ssl_st* ssl, const std::string& host) {
  const bool set = ParseAddress(host).ok()
                       ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1
                       : SSL_set1_host(ssl, host.c_str()) == 1;
  if (set) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("TLS: '", host, "' is no host"));
}

std::string GetDistrust(const ssl_st* ssl) {
  const long wrong = SSL_get_verify_result(ssl);
  return wrong == X509_V_OK ? std::string() : X509_verify_cert_error_string(wrong);
}

int GetTlsAlert(unsigned long code) {
  const int reason = ERR_GET_REASON(code);
  const bool alert = ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET;
  return alert ? reason - SSL_AD_REASON_OFFSET : -1;
}

bool IsCertificateAlert(int alert) {
  return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_ACCESS_DENIED) ||
         alert == SSL_AD_CERTIFICATE_REQUIRED;
}

std::string GetOwnExpiry(const ssl_st* ssl) {
  const X509* const own = SSL_get_certificate(ssl);
  const ASN1_TIME* const end = own == nullptr ? nullptr : X509_get0_notAfter(own);
  if (end == nullptr || X509_cmp_current_time(end) >= 0) return "";
  BIO* const bio = BIO_new(BIO_s_mem());
  if (bio == nullptr || ASN1_TIME_print(bio, end) != 1) {
    BIO_free(bio);
    return "";
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string expiry(text, static_cast<size_t>(size));
  BIO_free(bio);
  return expiry;
}

}  // namespace muster::net::internal
