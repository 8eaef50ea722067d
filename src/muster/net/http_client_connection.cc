#include "muster/net/http_client_connection.h"

#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include "muster/net/http_dial.h"
#include "muster/net/tls_peer.h"

namespace muster::net::internal {
namespace {

constexpr size_t kChunkBytes = size_t{32} << 10;

bool IsTlsError(const HttpStream::Error& error) {
  return error.category() == boost::asio::error::get_ssl_category();
}

}  // namespace

HttpStream::Done HttpClientConnection::Start(Operation* operation) {
  operation->done = false;
  return [operation](const HttpStream::Error& error, size_t bytes) {
    operation->done = true;
    operation->error = error;
    operation->bytes = bytes;
  };
}

void HttpClientConnection::Close() {
  if (stream_ == nullptr) return;
  stream_->Close();
  loop_.RunHandlers();
  stream_ = nullptr;
}

bool HttpClientConnection::IsUsable() {
  if (stream_ != nullptr && !stream_->Quiet()) Close();
  return stream_ != nullptr;
}

absl::Status HttpClientConnection::Open(SteadyTime deadline) {
  Close();
  MUSTER_ASSIGN_OR_RETURN(boost::asio::ip::tcp::socket socket, Dial(loop_, url_, deadline));
  if (tls_ == nullptr) {
    stream_ = MakePlainStream(std::move(socket));
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(stream_, MakeTlsClientStream(std::move(socket), *tls_, url_.host));
  absl::Status status = Shake(deadline);
  if (!status.ok()) Close();
  return status;
}

absl::Status HttpClientConnection::Shake(SteadyTime deadline) {
  stream_->Handshake([done = Start(&read_)](const HttpStream::Error& error) { done(error, 0); });
  MUSTER_RETURN_IF_ERROR(Annotate(loop_.RunUntil(read_.done, deadline), "TLS handshake"));
  return read_.error ? TlsFailure(read_.error) : absl::OkStatus();
}

absl::Status HttpClientConnection::TlsFailure(const HttpStream::Error& error) {
  if (const std::string distrust = stream_->Distrust(); !distrust.empty()) {
    return absl::UnauthenticatedError(
        StrCat("TLS: the server's certificate is not believed: ", distrust,
               "; is this server of the same job, and its certificate for this name?"));
  }
  const auto code = static_cast<unsigned long>(error.value());
  if (IsTlsError(error) && IsCertificateAlert(TlsAlertOf(code))) {
    return absl::UnauthenticatedError(StrCat(
        "TLS: the server wants a certificate of a client of its own job: ", error.message()));
  }
  return absl::UnavailableError(StrCat("TLS: ", error.message(), "; does the server speak TLS?"));
}

absl::Status HttpClientConnection::Exchange(std::string_view request, HttpAnswerReader& reader,
                                            SteadyTime deadline) {
  chunk_.resize(kChunkBytes);
  follows_more_ = false;
  stream_->Write(request, Start(&write_));
  absl::Status status = ReadAnswer(reader, deadline);
  const bool goes_on =
      status.ok() && reader.keep_alive() && !follows_more_ && write_.done && !write_.error;
  if (!goes_on) Close();
  return status;
}

absl::Status HttpClientConnection::ReadAnswer(HttpAnswerReader& reader, SteadyTime deadline) {
  while (!reader.done()) {
    stream_->ReadSome(chunk_.data(), chunk_.size(), Start(&read_));
    if (const absl::Status waited = loop_.RunUntil(read_.done, deadline); !waited.ok()) {
      return absl::Status(waited.code(), StrCat(ToStd(waited.message()), ": ", reader.Progress()));
    }
    if (read_.error == boost::asio::error::eof) {
      reader.PutEnd();
    } else if (IsTlsError(read_.error)) {
      return TlsFailure(read_.error);
    } else if (read_.error) {
      return absl::UnavailableError(
          StrCat("the connection broke: ", read_.error.message(), "; ", reader.Progress()));
    } else {
      follows_more_ = reader.Put(std::string_view(chunk_).substr(0, read_.bytes)) < read_.bytes;
    }
    MUSTER_RETURN_IF_ERROR(reader.fault());
  }
  return absl::OkStatus();
}

}  // namespace muster::net::internal
