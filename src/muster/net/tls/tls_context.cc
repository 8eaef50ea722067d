#include "muster/net/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include <boost/asio/buffer.hpp>

namespace muster::net::internal {

namespace asio = boost::asio;

namespace {

using ContextPtr = std::unique_ptr<asio::ssl::context>;

absl::StatusOr<ContextPtr> NewContext(const SSL_METHOD* method) {
  SSL_CTX* raw = SSL_CTX_new(method);
  if (raw == nullptr) return absl::InternalError("TLS: OpenSSL gives no context");
  auto context = std::make_unique<asio::ssl::context>(raw);
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  // A connection that is kept open needs no session to resume, and a stranger gets no session to
  // store. (Tasks that know each other do: transport/tls_sessions.h.)
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  return context;
}

absl::Status UseCredentials(asio::ssl::context& context, std::string_view whose,
                            const std::string& certificate, const std::string& key) {
  boost::system::error_code error;
  context.use_certificate_chain(asio::buffer(certificate), error);
  if (error) {
    return absl::InvalidArgumentError(
        StrCat("TLS: the ", whose, "'s certificate is no PEM certificate: ", error.message()));
  }
  context.use_private_key(asio::buffer(key), asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(context.native_handle()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        StrCat("TLS: the ", whose,
               "'s key is no PEM key of its certificate; make both with muster certs"));
  }
  return absl::OkStatus();
}

// Of the other side.
absl::Status Believe(asio::ssl::context& context, std::string_view whose,
                     const std::string& authority) {
  boost::system::error_code error;
  context.add_certificate_authority(asio::buffer(authority), error);
  if (error) {
    return absl::InvalidArgumentError(
        StrCat("TLS: the ", whose, " authority is no PEM certificate: ", error.message()));
  }
  context.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  return absl::OkStatus();
}

absl::Status BelieveMachine(asio::ssl::context& context) {
  boost::system::error_code error;
  context.set_default_verify_paths(error);
  if (error) {
    return absl::FailedPreconditionError(
        StrCat("TLS: this machine's authorities cannot be read: ", error.message()));
  }
  context.set_verify_mode(asio::ssl::verify_peer, error);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ContextPtr> MakeServerContext(const ServerTls& tls) {
  MUSTER_ASSIGN_OR_RETURN(ContextPtr context, NewContext(TLS_server_method()));
  MUSTER_RETURN_IF_ERROR(UseCredentials(*context, "server", tls.certificate, tls.key));
  if (tls.client_authority.empty()) return context;
  MUSTER_RETURN_IF_ERROR(Believe(*context, "clients'", tls.client_authority));
  return context;
}

absl::StatusOr<ContextPtr> MakeClientContext(const ClientTls& tls) {
  if (tls.machine_authorities && !tls.authority.empty()) {
    return absl::InvalidArgumentError(
        "TLS: both an authority and the machine's authorities are to be trusted; choose one");
  }
  if (!tls.machine_authorities && tls.authority.empty()) {
    return absl::FailedPreconditionError(
        "TLS: no authority is trusted; give the server's, or trust those of this machine");
  }
  MUSTER_ASSIGN_OR_RETURN(ContextPtr context, NewContext(TLS_client_method()));
  if (tls.allow_tls_1_2) {
    SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
    SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION);
  }
  MUSTER_RETURN_IF_ERROR(tls.machine_authorities ? BelieveMachine(*context)
                                                 : Believe(*context, "server's", tls.authority));
  if (tls.certificate.empty()) return context;
  MUSTER_RETURN_IF_ERROR(UseCredentials(*context, "client", tls.certificate, tls.key));
  return context;
}

}  // namespace muster::net::internal
