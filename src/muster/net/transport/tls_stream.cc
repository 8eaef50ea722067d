#include "muster/net/transport/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "muster/net/tls/tls_peer.h"
#include "muster/net/transport/socket_error.h"

namespace muster::net::transport {
namespace {

constexpr size_t kPlainBytes = size_t{64} << 10;
// A smaller read goes through the buffer.
constexpr size_t kWorthDecryptingInPlace = size_t{8} << 10;
// This much is read at once, so that it is still in the cache when it is used.
constexpr size_t kMostAtOnce = size_t{64} << 10;
// This much is sent at once, in several records.
constexpr size_t kWorthSending = size_t{64} << 10;
constexpr std::string_view kBindingLabel = "EXPORTER-Channel-Binding";  // RFC 9266
constexpr size_t kBindingBytes = 32;
// RFC 8446, 4.6.3 and 6: an update of the keys that asks for none, and alerts.
constexpr unsigned char kKeyUpdate[] = {24, 0, 0, 1, 0};
constexpr unsigned char kGoodbye[] = {1, 0}, kBadRecord[] = {2, 20};
// So long a peer that does not read delays a close, where the kernel encrypts.
constexpr double kGoodbyeSeconds = 1;

}  // namespace

std::string_view GetTlsReason(unsigned long code) {
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

void TlsStream::Free::operator()(ssl_st* ssl) const { SSL_free(ssl); }
void TlsStream::Free::operator()(bio_method_st* method) const { BIO_meth_free(method); }

TlsStream::TlsStream(std::unique_ptr<Stream> inner, std::shared_ptr<const Tls> tls)
    : Stream(inner->peer()),
      inner_(std::move(inner)),
      tls_(std::move(tls)),
      buffer_(kPlainBytes, kRecordBytes) {}

TlsStream::~TlsStream() = default;

int TlsStream::BioWrite(bio_st* bio, const char* data, int size) {
  auto& self = *static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self.by_kernel_) return size;  // an alert, by a key that has passed; Judge sends one
  const ConstBytes sealed = std::as_bytes(std::span(data, static_cast<size_t>(size)));
  self.sealed_.insert(self.sealed_.end(), sealed.begin(), sealed.end());
  return size;
}

int TlsStream::BioRead(bio_st* bio, char* data, int size) {
  auto& self = *static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const absl::StatusOr<size_t> came =
      self.ReadInner(std::as_writable_bytes(std::span(data, static_cast<size_t>(size))));
  if (came.ok() && *came > 0) {
    if (self.first_byte_ == 0) self.first_byte_ = static_cast<unsigned char>(*data);
    return static_cast<int>(*came);
  }
  if (came.ok()) BIO_set_retry_read(bio);
  self.inner_error_ = came.status();
  return -1;
}

// Bytes that were shown are taken before inner_ is asked again: its end may have come after them.
absl::StatusOr<size_t> TlsStream::ReadInner(MutableBytes to) {
  const ConstBytes shown = std::exchange(inner_shown_, {});
  if (shown.empty()) return inner_->Read(to);
  const size_t n = std::min(shown.size(), to.size());
  std::memcpy(to.data(), shown.data(), n);
  inner_->Consume(n);
  return n;
}

long TlsStream::BioControl(bio_st*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // Flush is for us to call
}

void TlsStream::Prepare() {
  if (ERR_peek_error() != 0) ERR_clear_error();  // clearing costs more than looking
  inner_error_ = absl::OkStatus();
}

absl::Status TlsStream::Judge(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  const unsigned long code = ERR_peek_error();
  if (code != 0) ERR_clear_error();
  if (!inner_error_.ok()) return inner_error_;
  if (error == SSL_ERROR_WANT_READ) dry_ = true;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return absl::OkStatus();
  if (error == SSL_ERROR_ZERO_RETURN) return PeerClosed(peer());
  if (!shaken_) return Refusal(code);
  if (net::internal::GetTlsAlert(code) >= 0) {
    return absl::DataLossError(StrCat(peer(),
                                      " gives the connection up: what it got was damaged or "
                                      "altered on its way (TLS: ",
                                      GetTlsReason(code), ")"));
  }
  if (by_kernel_) {
    const auto alert = std::as_bytes(std::span(kBadRecord));
    inner_->WriteTlsRecord(kAlertRecord, alert, 0).status().IgnoreError();
  }
  return absl::DataLossError(StrCat(
      "bytes of ", peer(), " were damaged or altered on their way (TLS: ", GetTlsReason(code),
      "); the connection is given up"));
}

absl::Status TlsStream::Closed() const {
  return absl::UnavailableError(StrCat("the connection to ", peer(), " was closed here"));
}

absl::StatusOr<size_t> TlsStream::Decrypt(MutableBytes to) {
  if (!read_error_.ok()) return read_error_;
  // Who waits comes here again and again; OpenSSL would take longer to find that nothing has come.
  if (dry_) {
    const absl::StatusOr<ConstBytes> come = inner_->Peek();
    if (come.ok() && come->empty()) return 0;
    inner_shown_ = come.value_or(ConstBytes());
  }
  Prepare();
  const int came =
      SSL_read(ssl_.get(), to.data(), static_cast<int>(std::min(to.size(), kMostAtOnce)));
  if (!sealed_.empty() && !owes_) Flush().status().IgnoreError();  // OpenSSL had an answer
  if (came > 0) {
    dry_ = false;
    return static_cast<size_t>(came);
  }
  read_error_ = Judge(came);
  if (!read_error_.ok()) return read_error_;
  return 0;
}

// More is decrypted only if all bytes left were shown already and the caller wants more.
absl::StatusOr<ConstBytes> TlsStream::Peek() {
  if (!open_) return Closed();
  if (buffer_.size() < 8) {
    MutableBytes room = buffer_.MakeRoom();
    absl::StatusOr<size_t> came = kRecordBytes;
    // After a record that is not full there is often no other; the next call takes it if there is.
    while (!room.empty() && came.ok() && *came == kRecordBytes) {
      came = Decrypt(room);
      const size_t n = came.value_or(0);
      buffer_.Grow(n);
      room = room.subspan(n);
    }
    if (!came.ok() && buffer_.size() <= shown_) return came.status();
  }
  shown_ = buffer_.size();
  return buffer_.bytes();
}

void TlsStream::Consume(size_t n) {
  buffer_.Consume(n);
  shown_ = 0;
}

absl::StatusOr<size_t> TlsStream::Read(MutableBytes to) {
  if (!buffer_.empty() || to.size() < kWorthDecryptingInPlace) return Stream::Read(to);
  if (!open_) return Closed();
  size_t all = 0;
  for (const size_t most = std::min(to.size(), kMostAtOnce); all < most;) {
    const absl::StatusOr<size_t> came = Decrypt(to.first(most).subspan(all));
    if (!came.ok() && all == 0) return came;
    if (came.value_or(0) == 0) break;
    all += *came;
  }
  buffer_.Pass(all);
  return all;
}

absl::Status TlsStream::Encrypt(ConstBytes record) {
  Prepare();
  if (++records_ > tls_->options().records_per_key) {
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);  // goes before the record
    records_ = 1;
  }
  const int went = SSL_write(ssl_.get(), record.data(), static_cast<int>(record.size()));
  return went > 0 ? absl::OkStatus() : Judge(went);
}

absl::StatusOr<bool> TlsStream::Flush() {
  while (sealed_gone_ < sealed_.size()) {
    const ConstBytes rest = ConstBytes(sealed_).subspan(sealed_gone_);
    MUSTER_ASSIGN_OR_RETURN(const size_t went, inner_->Write({&rest, 1}));
    if (went == 0) return false;
    sealed_gone_ += went;
  }
  sealed_.clear();
  sealed_gone_ = 0;
  return true;
}

absl::StatusOr<bool> TlsStream::FlushOrHear() {
  absl::StatusOr<bool> gone = Flush();
  return gone.ok() ? gone : Hear(gone.status());
}

absl::Status TlsStream::Hear(const absl::Status& error) {
  while (read_error_.ok()) {
    const MutableBytes room = buffer_.MakeRoom();
    const size_t came = room.empty() ? 0 : Decrypt(room).value_or(0);
    if (came == 0) break;
    buffer_.Grow(came);
  }
  return absl::IsDataLoss(read_error_) ? read_error_ : error;
}

ConstBytes TlsStream::NextRecord(std::span<const ConstBytes> pieces, size_t at) {
  size_t gathered = 0;
  for (const ConstBytes piece : pieces) {
    const size_t skipped = std::min(at, piece.size());
    at -= skipped;
    const ConstBytes rest = piece.subspan(skipped);
    if (rest.size() >= kRecordBytes) {
      if (gathered == 0) return rest.first(kRecordBytes);
      break;  // what comes before a large piece, such as a frame's header, is a record of its own
    }
    const ConstBytes some = rest.first(std::min(rest.size(), kRecordBytes - gathered));
    std::copy(some.begin(), some.end(), gathered_.begin() + static_cast<ptrdiff_t>(gathered));
    gathered += some.size();
  }
  return ConstBytes(gathered_).first(gathered);
}

absl::StatusOr<bool> TlsStream::ChangeKernelKey() {
  const auto update = std::as_bytes(std::span(kKeyUpdate));
  MUSTER_ASSIGN_OR_RETURN(const bool gone, inner_->WriteTlsRecord(kHandshakeRecord, update, 0));
  if (!gone) return false;
  if (const absl::Status given = GiveKernelNextKey(); !given.ok()) {
    write_error_ = absl::UnavailableError(
        StrCat("the connection to ", peer(), " is given up: ", ToStd(given.message())));
    return write_error_;
  }
  return true;
}

absl::Status TlsStream::GiveKernelNextKey() {
  records_ = 0;
  MUSTER_RETURN_IF_ERROR(secret_.Advance());
  MUSTER_ASSIGN_OR_RETURN(const TlsKey key, secret_.MakeKey());
  return inner_->SetTlsKey(key);
}

absl::StatusOr<size_t> TlsStream::WriteByKernel(std::span<const ConstBytes> pieces) {
  if (!write_error_.ok()) return write_error_;
  if (absl::IsDataLoss(read_error_)) return read_error_;
  if (records_ >= tls_->options().records_per_key) {
    const absl::StatusOr<bool> changed = ChangeKernelKey();
    if (!changed.ok()) return Hear(changed.status());
    if (!*changed) return 0;
  }
  const absl::StatusOr<size_t> went = inner_->Write(pieces);
  if (!went.ok()) return Hear(went.status());
  if (*went > 0) records_ += *went / kRecordBytes + 1;
  return went;
}

absl::StatusOr<size_t> TlsStream::Write(std::span<const ConstBytes> pieces) {
  if (!open_) return Closed();
  if (by_kernel_) return WriteByKernel(pieces);
  pieces = pieces.first(std::min(pieces.size(), kMaxPieces));
  size_t all = 0, at = 0;
  for (const ConstBytes piece : pieces) all += piece.size();
  if (!sealed_.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const bool gone, FlushOrHear());
    if (!gone) return 0;
    if (std::exchange(owes_, false)) at = std::min<size_t>(all, 1);
  }
  while (at < all) {
    const ConstBytes record = NextRecord(pieces, at);
    MUSTER_RETURN_IF_ERROR(Encrypt(record));
    at += record.size();
    if (at < all && sealed_.size() < kWorthSending) continue;
    MUSTER_ASSIGN_OR_RETURN(const bool gone, FlushOrHear());
    owes_ = !gone;
    if (!gone) return at - 1;
  }
  return at;
}

PollWish TlsStream::Arm(bool read, bool write) {
  if (!open_ || (read && !dry_)) return {};
  armed_ = true;
  return inner_->Arm(read, write);
}

void TlsStream::Disarm() {
  if (std::exchange(armed_, false)) inner_->Disarm();
}

void TlsStream::Close() {
  if (!std::exchange(open_, false)) return;
  if (by_kernel_) {
    const auto goodbye = std::as_bytes(std::span(kGoodbye));
    if (write_error_.ok() && !absl::IsDataLoss(read_error_)) {
      inner_->WriteTlsRecord(kAlertRecord, goodbye, kGoodbyeSeconds).status().IgnoreError();
    }
  } else if (shaken_ && Flush().value_or(false)) {
    Prepare();
    SSL_shutdown(ssl_.get());  // says goodbye, as far as that goes now
    ERR_clear_error();
    Flush().status().IgnoreError();
  }
  inner_->Close();
}

std::string TlsStream::binding() const {
  std::string binding(kBindingBytes, '\0');
  const int made = SSL_export_keying_material(
      ssl_.get(), reinterpret_cast<unsigned char*>(binding.data()), binding.size(),
      kBindingLabel.data(), kBindingLabel.size(), nullptr, 0, 0);
  return made == 1 ? binding : "";
}

}  // namespace muster::net::transport
