#include "muster/net/http/client_connection.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include "muster/net/http/dial.h"
#include "muster/net/tls/tls_peer.h"

namespace muster::net::internal {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 10;
// Servers that send a large body in small pieces wake this end once for so many bytes.
constexpr size_t kLeastRead = size_t{256} << 10;
constexpr size_t kTlsChunkBytes = size_t{16} << 10;  // a record has no more

bool IsTlsError(const HttpStream::Error& error) {
  return error.category() == boost::asio::error::get_ssl_category();
}

}  // namespace

SteadyTime CallDeadlines::Next() const {
  const SteadyTime now = std::chrono::steady_clock::now();
  return silence < total - now ? now + silence : total;
}

HttpStream::Done HttpClientConnection::Start(Operation* operation) {
  operation->done = false;
  return [this, operation](const HttpStream::Error& error, size_t bytes) {
    ended_one_ = true;
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
  least_read_ = 1;
  chunk_ = std::string();
}

bool HttpClientConnection::IsUsable() {
  if (stream_ != nullptr && !stream_->Quiet()) Close();
  return stream_ != nullptr;
}

absl::Status HttpClientConnection::Open(const HttpUrl& url, boost::asio::ssl::context* tls,
                                        SteadyTime deadline) {
  Close();
  chunk_bytes_ = url.is_tls ? kTlsChunkBytes : kChunkBytes;
  MUSTER_ASSIGN_OR_RETURN(boost::asio::ip::tcp::socket socket, Dial(loop_, url, deadline));
  if (!url.is_tls) {
    stream_ = MakePlainStream(std::move(socket));
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(stream_, MakeTlsClientStream(std::move(socket), *tls, url.host));
  absl::Cleanup closing = [this] { Close(); };
  MUSTER_RETURN_IF_ERROR(Shake(deadline));
  std::move(closing).Cancel();
  return absl::OkStatus();
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
               "; is it for this name, and of an authority that is trusted here?"));
  }
  const auto code = static_cast<unsigned long>(error.value());
  if (IsTlsError(error) && IsCertificateAlert(GetTlsAlert(code))) {
    return absl::UnauthenticatedError(
        StrCat("TLS: the server wants a client's certificate that it trusts: ", error.message()));
  }
  return absl::UnavailableError(StrCat("TLS: ", error.message(), "; does the server speak TLS?"));
}

absl::Status HttpClientConnection::Exchange(HttpRequestWriter& request, HttpAnswerReader& reader,
                                            const CallDeadlines& deadlines) {
  absl::Cleanup closing = [this] { Close(); };
  chunk_.resize(chunk_bytes_);
  follows_more_ = false;
  MUSTER_RETURN_IF_ERROR(SendAndRead(request, reader, deadlines));
  if (reader.keep_alive() && !follows_more_ && sending_ == Sending::kDone) {
    SetLeastRead(1);
    std::move(closing).Cancel();
  }
  return absl::OkStatus();
}

absl::Status HttpClientConnection::SendAndRead(HttpRequestWriter& request, HttpAnswerReader& reader,
                                               const CallDeadlines& deadlines) {
  write_ = {};
  sending_ = Sending::kInProgress;
  MUSTER_RETURN_IF_ERROR(SendNext(request));
  StartRead(reader);
  for (;;) {
    MUSTER_RETURN_IF_ERROR(Wait(reader, deadlines));
    if (read_.done) {  // first, since it may say that the rest of the request is not wanted
      MUSTER_RETURN_IF_ERROR(ReceiveBytes(reader));
      if (reader.done()) return absl::OkStatus();
      StartRead(reader);
    }
    if (write_.done && sending_ == Sending::kInProgress) MUSTER_RETURN_IF_ERROR(SendNext(request));
  }
}

void HttpClientConnection::StartRead(const HttpAnswerReader& reader) {
  const std::span<char> room = reader.Room();
  SetLeastRead(std::clamp<size_t>(room.size(), 1, kLeastRead));
  into_ = room.empty() ? std::span<char>(chunk_) : room;
  stream_->ReadSome(into_.data(), into_.size(), Start(&read_));
}

void HttpClientConnection::SetLeastRead(size_t size) {
  if (size == least_read_) return;
  least_read_ = size;
  stream_->SetLeastRead(size);
}

// Waits until the read or the write in progress has ended.
absl::Status HttpClientConnection::Wait(const HttpAnswerReader& reader,
                                        const CallDeadlines& deadlines) {
  ended_one_ = false;
  const SteadyTime until = deadlines.Next();
  absl::Status waited = loop_.RunUntil(ended_one_, until);
  if (absl::IsDeadlineExceeded(waited) && least_read_ > 1) {
    SetLeastRead(1);  // the read takes the fewer bytes that may be there
    loop_.RunHandlers();
    if (ended_one_) waited = absl::OkStatus();
  }
  if (waited.ok()) return waited;
  const bool silent = absl::IsDeadlineExceeded(waited) && until < deadlines.total;
  const std::string why =
      silent
          ? StrCat("not a byte in ", std::chrono::duration<double>(deadlines.silence).count(), " s")
          : std::string(waited.message());
  return absl::Status(waited.code(), StrCat(why, ": ", reader.Progress()));
}

// After a write that failed the answer is still read: the server may have refused the rest of the
// request.
absl::Status HttpClientConnection::SendNext(HttpRequestWriter& request) {
  if (write_.error) {
    sending_ = Sending::kBroken;
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string_view piece, request.Next());
  if (piece.empty()) {
    sending_ = Sending::kDone;
  } else {
    stream_->Write(piece, Start(&write_));
  }
  return absl::OkStatus();
}

absl::Status HttpClientConnection::ReceiveBytes(HttpAnswerReader& reader) {
  if (read_.error == boost::asio::error::eof) {
    reader.PutEnd();
  } else if (IsTlsError(read_.error)) {
    return TlsFailure(read_.error);
  } else if (read_.error) {
    return absl::UnavailableError(
        StrCat("the connection broke: ", read_.error.message(), "; ", reader.Progress()));
  } else {
    follows_more_ = reader.Put({into_.data(), read_.bytes}) < read_.bytes;
  }
  return reader.fault();
}

}  // namespace muster::net::internal
