// The beginning of a TlsStream: its handshake, and the reasons for a failed one.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

#include "absl/strings/escaping.h"

#include "muster/net/tls/tls_peer.h"
#include "muster/net/transport/tls_stream.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using process::Deadline;

constexpr std::string_view kWelcome = "MUSTTLS2";
constexpr unsigned char kPlainText = 'M';  // of "MUSTRNET"

constexpr char kSameCertificates[] =
    "; give all tasks the certificates of one run of muster certs that names every machine by "
    "--host";

constexpr char kNewCertificates[] =
    "; make new ones with muster certs, give them to all tasks and start these again (openssl x509 "
    "-enddate -noout -in server.pem says until when one is good)";

bool IsExpiry(std::string_view why) { return why.find("expired") != std::string_view::npos; }

// What to do about a certificate that was refused for this reason.
std::string_view Advice(std::string_view why) {
  return IsExpiry(why) ? kNewCertificates : kSameCertificates;
}

}  // namespace

// Remembers the certificate that was not trusted; OpenSSL forgets it.
int TlsStream::OnCertificate(int good, x509_store_ctx_st* check) {
  if (good == 1) return good;
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& self = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
  if (X509* const shown = X509_STORE_CTX_get0_cert(check); shown != nullptr) {
    self.shown_issuer_ = IssuerName(shown);
  }
  return good;
}

absl::Status TlsStream::Begin(ssl_ctx_st* context) {
  method_.reset(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "stream"));
  ssl_.reset(SSL_new(context));
  BIO* const bio = method_ == nullptr ? nullptr : BIO_new(method_.get());
  if (ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    return absl::ResourceExhaustedError("TLS: OpenSSL has no memory for a connection");
  }
  BIO_meth_set_write(method_.get(), BioWrite);
  BIO_meth_set_read(method_.get(), BioRead);
  BIO_meth_set_ctrl(method_.get(), BioControl);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, OnCertificate);
  // The buffers are kept, since bytes come all the time, and a record is read in one call.
  SSL_clear_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_set_read_ahead(ssl_.get(), 1);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Stream>> TlsStream::Dialed(std::unique_ptr<Stream> inner,
                                                          std::shared_ptr<const Tls> tls,
                                                          const std::string& host,
                                                          Deadline deadline,
                                                          const Interrupt& interrupt) {
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(inner), std::move(tls)));
  MUSTER_RETURN_IF_ERROR(stream->Begin(stream->tls_->client()));
  SSL* const ssl = stream->ssl_.get();
  MUSTER_RETURN_IF_ERROR(net::internal::ExpectHost(ssl, host));
  SSL_set_connect_state(ssl);
  stream->host_ = host;
  const std::string peer = StrCat(host, " at ", stream->peer());
  stream->tls_->sessions().Offer(peer, ssl);
  MUSTER_RETURN_IF_ERROR(stream->Shake(deadline, interrupt));
  MUSTER_RETURN_IF_ERROR(stream->AwaitWelcome(deadline, interrupt));
  stream->tls_->sessions().Keep(peer, ssl);
  MUSTER_RETURN_IF_ERROR(stream->MoveToKernel(deadline, interrupt));
  return stream;
}

absl::StatusOr<std::unique_ptr<Stream>> TlsStream::Accepted(std::unique_ptr<Stream> inner,
                                                            std::shared_ptr<const Tls> tls,
                                                            Deadline deadline,
                                                            const Interrupt& interrupt) {
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(inner), std::move(tls)));
  MUSTER_RETURN_IF_ERROR(stream->Begin(stream->tls_->server()));
  SSL_set_accept_state(stream->ssl_.get());
  MUSTER_RETURN_IF_ERROR(stream->Shake(deadline, interrupt));
  MUSTER_RETURN_IF_ERROR(stream->SendWelcome(deadline, interrupt));
  MUSTER_RETURN_IF_ERROR(stream->MoveToKernel(deadline, interrupt));
  return stream;
}

bool TlsStream::is_resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

absl::Status TlsStream::Await(bool read, Deadline deadline, const Interrupt& interrupt) {
  const Awaited one = {.stream = inner_.get(), .read = read, .write = !read};
  const absl::Status status = WaitFor({&one, 1}, deadline, interrupt);
  if (status.ok() || interrupt.is_set()) return status;
  return Annotate(status, StrCat("TLS handshake with ", peer()));
}

absl::Status TlsStream::Shake(Deadline deadline, const Interrupt& interrupt) {
  while (true) {
    Prepare();
    const int result = SSL_do_handshake(ssl_.get());
    const absl::Status judged = result == 1 ? absl::OkStatus() : Judge(result);
    if (!judged.ok()) {
      Flush().status().IgnoreError();  // the peer hears why
      return judged;
    }
    MUSTER_RETURN_IF_ERROR(FlushAll(deadline, interrupt));
    if (result == 1) {
      dry_ = false;  // OpenSSL may have read what follows the handshake
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(Await(/*read=*/true, deadline, interrupt));
  }
}

absl::Status TlsStream::FlushAll(Deadline deadline, const Interrupt& interrupt) {
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool gone, Flush());
    if (gone) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(Await(/*read=*/false, deadline, interrupt));
  }
}

absl::Status TlsStream::SendWelcome(Deadline deadline, const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(Encrypt(std::as_bytes(std::span(kWelcome))));
  shaken_ = true;
  return FlushAll(deadline, interrupt);
}

absl::Status TlsStream::AwaitWelcome(Deadline deadline, const Interrupt& interrupt) {
  std::string welcome(kWelcome.size(), '\0');
  MutableBytes left = std::as_writable_bytes(std::span(welcome));
  while (!left.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const size_t came, Read(left));
    left = left.subspan(came);
    if (came == 0) MUSTER_RETURN_IF_ERROR(Await(/*read=*/true, deadline, interrupt));
  }
  if (welcome != kWelcome) {
    return absl::FailedPreconditionError(
        StrCat(peer(),
               " speaks TLS, but is no task of this version of Muster: use one Muster for "
               "the whole job"));
  }
  shaken_ = true;
  return absl::OkStatus();
}

void TlsStream::KeepSecrets(ssl_ctx_st* context) { SSL_CTX_set_keylog_callback(context, OnSecret); }

// `line`: "CLIENT_TRAFFIC_SECRET_0 RANDOM SECRET", in hexadecimal, and others.
void TlsStream::OnSecret(const ssl_st* ssl, const char* line) {
  const std::string_view text(line);
  const std::string_view own =
      SSL_is_server(ssl) == 1 ? "SERVER_TRAFFIC_SECRET_0 " : "CLIENT_TRAFFIC_SECRET_0 ";
  if (!text.starts_with(own)) return;
  const std::string_view secret = text.substr(text.rfind(' ') + 1);
  auto& self = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
  const auto suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl));
  self.secret_ = TlsSecret(suite, absl::HexStringToBytes(ToAbsl(secret)));
}

absl::Status TlsStream::MoveToKernel(Deadline deadline, const Interrupt& interrupt) {
  if (secret_.empty()) return absl::OkStatus();
  Prepare();
  if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1 ||
      SSL_do_handshake(ssl_.get()) != 1 || sealed_.empty()) {
    ERR_clear_error();
    return absl::InternalError(StrCat("TLS with ", peer(), ": OpenSSL does not change its key"));
  }
  MUSTER_RETURN_IF_ERROR(FlushAll(deadline, interrupt));
  const absl::Status given = GiveKernelNextKey();
  by_kernel_ = given.ok();
  if (by_kernel_) return absl::OkStatus();
  secret_ = TlsSecret();
  return absl::IsUnimplemented(given) ? absl::OkStatus() : given;  // OpenSSL goes on
}

// Returns why there is no TLS with this peer.
absl::Status TlsStream::Refusal(unsigned long code) const {
  if (first_byte_ == kPlainText) {
    return absl::FailedPreconditionError(
        StrCat("TLS and plain text meet: ", peer(), " answers in plain text, and this task, of ",
               tls_->authority(),
               ", dials other machines by TLS alone; give all tasks the "
               "certificates of one run of muster certs (",
               kCertsVariable, "), or none of them and ", kPlainTextVariable, "=1"));
  }
  if (const std::string wrong = net::internal::GetDistrust(ssl_.get()); !wrong.empty()) {
    return absl::UnauthenticatedError(StrCat("the certificate of ", peer(), ", of ", shown_issuer_,
                                             ", is not believed", host_.empty() ? "" : " at ",
                                             host_, " by this task, who believes ",
                                             tls_->authority(), " alone: ", wrong, Advice(wrong)));
  }
  if (ERR_GET_REASON(code) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    return absl::UnauthenticatedError(StrCat(peer(),
                                             " shows no certificate, and this task lets in "
                                             "who has one of ",
                                             tls_->authority(), " alone", kSameCertificates));
  }
  if (net::internal::IsCertificateAlert(net::internal::GetTlsAlert(code))) {
    const std::string_view why = GetTlsReason(code);
    const std::string expiry = IsExpiry(why) ? net::internal::GetOwnExpiry(ssl_.get()) : "";
    return absl::UnauthenticatedError(
        StrCat(peer(), " does not believe this task's certificate, of ", tls_->authority(), ": ",
               why, expiry.empty() ? "" : ", on ", expiry, Advice(why)));
  }
  return absl::DataLossError(StrCat("no TLS 1.3 with ", peer(), ": ", GetTlsReason(code)));
}

}  // namespace muster::net::transport
