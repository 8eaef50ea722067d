#include "muster/net/http/connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/buffer.hpp>

#include "muster/net/http/reply_state.h"

namespace muster::net::internal {
namespace {

constexpr double kLingerSeconds = 1;
constexpr size_t kLingerBytes = size_t{256} << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

absl::Status FaultStatus(const HttpFault& fault) {
  return fault.status == 400 ? absl::InvalidArgumentError(fault.message)
                             : absl::ResourceExhaustedError(fault.message);
}

}  // namespace

HttpConnection::HttpConnection(std::unique_ptr<HttpStream> stream, ConnectionHost* host,
                               std::string peer)
    : stream_(std::move(stream)),
      host_(host),
      peer_(std::move(peer)),
      deadline_(stream_->socket().get_executor()) {}

void HttpConnection::Start() {
  ArmToClose(host_->limits().header_seconds);
  stream_->Handshake([self = shared_from_this()](const HttpStream::Error& error) {
    if (self->closed_) return;
    if (error) return self->Close();
    self->BeginRequest();
  });
}

void HttpConnection::Close() {
  if (std::exchange(closed_, true)) return;
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  if (const auto reply = reply_.lock()) reply->Abandon();
  deadline_.cancel();
  stream_->Close();
  host_->Forget(this);
}

void HttpConnection::Stop() {
  if (waiting_) {
    const auto reply = reply_.lock();
    if (!reply || reply->over()) return;  // its answer is on the way
    reply->Abandon();
    Answer(number_, ErrorResponse(absl::UnavailableError("the server is stopping")));
  } else if (!writing_) {
    Close();
  }
}

// A timer that was rearmed may already have its old handler in the queue; the count tells them
// apart.
void HttpConnection::Arm(double seconds, std::function<void()> expired) {
  deadline_.expires_after(Nanoseconds(seconds));
  deadline_.async_wait([weak = weak_from_this(), armed = ++armed_,
                        expired = std::move(expired)](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->closed_ && self->armed_ == armed) expired();
  });
}

void HttpConnection::ArmToClose(double seconds) {
  Arm(seconds, [this] {
    host_->CountTimeOut();
    Close();
  });
}

void HttpConnection::BeginRequest() {
  reader_.emplace(host_->limits());
  plan_.reset();
  ++number_;
  idle_ = number_ > 1 && buffer_.empty();
  if (host_->stopping()) return Close();
  if (number_ > 1) {
    ArmToClose(idle_ ? host_->limits().idle_seconds : host_->limits().header_seconds);
  }
  if (buffer_.empty()) {
    ReadMore();
  } else {
    Parse();
  }
}

void HttpConnection::ReadMore() {
  stream_->ReadSome(chunk_.data(), chunk_.size(),
                    [self = shared_from_this()](const HttpStream::Error& error, size_t n) {
                      if (self->closed_) return;
                      if (error) return self->Close();
                      if (std::exchange(self->idle_, false))
                        self->ArmToClose(self->host_->limits().header_seconds);
                      self->buffer_.append(self->chunk_.data(), n);
                      self->Parse();
                    });
}

void HttpConnection::Parse() {
  for (;;) {
    buffer_.erase(0, reader_->Put(buffer_));
    if (reader_->fault()) {
      const HttpFault& fault = *reader_->fault();
      return Refuse(ErrorResponse(FaultStatus(fault), fault.status));
    }
    if (!reader_->header_done() || plan_) break;
    if (!JudgeHeader()) return;
    if (reader_->expects_continue() && !reader_->done() && buffer_.empty()) return SendContinue();
  }
  if (reader_->done()) return Dispatch();
  ReadMore();
}

bool HttpConnection::JudgeHeader() {
  plan_ = host_->Judge(*reader_);
  if (!plan_->is_stranger && !admitted_) {
    admitted_ = host_->Admit(this);
    if (!admitted_) {
      Refuse(ErrorResponse(absl::UnavailableError("too many connections; try again later")));
      return false;
    }
  }
  if (plan_->refusal) {
    // An answer to HEAD has no body, and this one has one: the bytes of it would be taken for the
    // next answer.
    const bool keep_alive = !plan_->is_stranger && !reader_->has_body() && reader_->keep_alive() &&
                            reader_->method() != "HEAD";
    Write(*plan_->refusal, keep_alive);
    return false;
  }
  reader_->AcceptBody();
  ArmToClose(host_->limits().body_seconds);
  return true;
}

void HttpConnection::SendContinue() {
  stream_->Write(kContinue, [self = shared_from_this()](const HttpStream::Error& error, size_t) {
    if (self->closed_) return;
    if (error) return self->Close();
    self->ReadMore();
  });
}

void HttpConnection::Refuse(const HttpResponse& response) { Write(response, false); }

void HttpConnection::Dispatch() {
  waiting_ = true;
  answer_by_ = std::chrono::steady_clock::now() + Nanoseconds(host_->limits().answer_seconds);
  Arm(host_->limits().answer_seconds, [this, number = number_] {
    if (const auto reply = reply_.lock()) reply->Abandon();
    Answer(number, ErrorResponse(absl::DeadlineExceededError("the server's handler was too slow")));
  });
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  reply_ = host_->Handle(this, std::move(*plan_), *reader_);
  const auto reply = reply_.lock();
  if (reply && !reply->over()) WatchForEnd();
}

// A peer that closes while its request waits is noticed. A peer that already sends its next request
// is not watched.
void HttpConnection::WatchForEnd() {
  stream_->WaitReadable([weak = weak_from_this(), number = number_](bool ok) {
    const auto self = weak.lock();
    if (!ok || !self || self->closed_) return;
    if (self->waiting_ && self->number_ == number && self->stream_->PeerClosed()) self->Close();
  });
}

void HttpConnection::Answer(uint64_t number, const HttpResponse& response) {
  if (closed_ || !waiting_ || number != number_) return;
  waiting_ = false;
  Write(response, reader_->keep_alive());
}

void HttpConnection::AnswerAfter(uint64_t number, double seconds, HttpResponse response) {
  if (closed_ || !waiting_ || number != number_) return;
  const std::chrono::duration<double> left = answer_by_ - std::chrono::steady_clock::now();
  Arm(seconds > 0 ? std::min(seconds, std::max(0.0, left.count())) : 0,
      [this, number, response = std::move(response)] {
        if (const auto reply = reply_.lock()) reply->Abandon();
        Answer(number, response);
      });
}

void HttpConnection::Write(const HttpResponse& response, bool keep_alive) {
  keep_alive = keep_alive && !host_->stopping();
  output_ = SerializeResponse(response, keep_alive);
  writing_ = true;
  ArmToClose(host_->limits().write_seconds);
  stream_->Write(output_,
                 [self = shared_from_this(), keep_alive](const HttpStream::Error& error, size_t) {
                   if (self->closed_) return;
                   self->writing_ = false;
                   self->output_ = std::string();
                   if (error) return self->Close();
                   if (!keep_alive) return self->Linger();
                   self->BeginRequest();
                 });
}

// Closing a connection with unread bytes would reset it, and the answer might be lost with it.
void HttpConnection::Linger() {
  stream_->ShutdownSend();
  buffer_ = std::string();
  Arm(kLingerSeconds, [this] { Close(); });
  DrainMore();
}

void HttpConnection::DrainMore() {
  stream_->socket().async_read_some(boost::asio::buffer(chunk_),
                                    [self = shared_from_this()](const auto& error, size_t bytes) {
                                      if (self->closed_) return;
                                      self->drained_ += bytes;
                                      if (error || self->drained_ > kLingerBytes)
                                        return self->Close();
                                      self->DrainMore();
                                    });
}

}  // namespace muster::net::internal
