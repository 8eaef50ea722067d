#include "muster/net/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include <boost/asio/buffer.hpp>

namespace muster::net::internal {

namespace asio = boost::asio;

absl::StatusOr<std::unique_ptr<asio::ssl::context>> MakeServerContext(const ServerTls& tls) {
  SSL_CTX* raw = SSL_CTX_new(TLS_server_method());
  if (raw == nullptr) return absl::InternalError("TLS: OpenSSL gives no context");
  auto context = std::make_unique<asio::ssl::context>(raw);
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  // A connection that is kept open needs no session to resume, and a stranger gets none to store.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  boost::system::error_code error;
  context->use_certificate_chain(asio::buffer(tls.certificate), error);
  if (error) {
    return absl::InvalidArgumentError(
        StrCat("TLS: the server's certificate is no PEM certificate: ", error.message()));
  }
  context->use_private_key(asio::buffer(tls.key), asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(raw) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "TLS: the server's key is no PEM key of its certificate; make both with muster certs");
  }
  if (tls.client_authority.empty()) return context;
  context->add_certificate_authority(asio::buffer(tls.client_authority), error);
  if (error) {
    return absl::InvalidArgumentError(
        StrCat("TLS: the clients' authority is no PEM certificate: ", error.message()));
  }
  context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  return context;
}

}  // namespace muster::net::internal
