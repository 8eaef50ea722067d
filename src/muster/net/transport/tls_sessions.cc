#include "muster/net/transport/tls_sessions.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

namespace muster::net::transport {
namespace {

constexpr size_t kMostSessions = 4096;  // of more peers than a task ever has
constexpr long kLifeSeconds = 3600;
constexpr unsigned char kContextName[] = {'m', 'u', 's', 't', 'e', 'r'};

bool IsCertificateValid(const SSL_SESSION* session) {
  const X509* const certificate = SSL_SESSION_get0_peer(const_cast<SSL_SESSION*>(session));
  return certificate != nullptr && X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0 &&
         X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

// Whether a session that a client offers is resumed; if not, both sides show certificates.
SSL_TICKET_RETURN Judge(SSL*, SSL_SESSION* session, const unsigned char*, size_t,
                        SSL_TICKET_STATUS status, void*) {
  const bool is_known = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
  if (is_known && IsCertificateValid(session)) return SSL_TICKET_RETURN_USE_RENEW;
  return SSL_TICKET_RETURN_IGNORE_RENEW;
}

}  // namespace

void TlsSessions::Free::operator()(ssl_session_st* session) const { SSL_SESSION_free(session); }

void TlsSessions::Allow(ssl_ctx_st* server) {
  SSL_CTX_set_num_tickets(server, 1);
  SSL_CTX_set_timeout(server, kLifeSeconds);
  SSL_CTX_set_session_id_context(server, kContextName, sizeof kContextName);
  SSL_CTX_set_session_ticket_cb(server, nullptr, Judge, nullptr);
}

void TlsSessions::Offer(const std::string& peer, ssl_st* ssl) {
  const MutexLock lock(&mutex_);
  const auto found = sessions_.find(peer);
  if (found == sessions_.end()) return;
  const auto session = std::move(found->second);
  sessions_.erase(found);
  if (IsCertificateValid(session.get())) SSL_set_session(ssl, session.get());
}

void TlsSessions::Keep(const std::string& peer, ssl_st* ssl) {
  const SSL_SESSION* const own = SSL_get0_session(ssl);
  if (own == nullptr || SSL_SESSION_is_resumable(own) != 1) return;
  // OpenSSL makes a session useless when its connection ends without a goodbye; a copy is not.
  std::unique_ptr<ssl_session_st, Free> session(SSL_SESSION_dup(own));
  if (session == nullptr) return;
  const MutexLock lock(&mutex_);
  if (sessions_.size() >= kMostSessions) sessions_.clear();
  sessions_[peer] = std::move(session);
}

}  // namespace muster::net::transport
