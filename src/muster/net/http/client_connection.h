// A client's connection to one server: opened, used for one request after the other, closed.
// Included by .cc files of this layer only: Asio takes seconds to compile.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ssl/context.hpp>

#include "muster/base/status.h"
#include "muster/net/http/answer_reader.h"
#include "muster/net/http/client_loop.h"
#include "muster/net/http/request_writer.h"
#include "muster/net/http/stream.h"
#include "muster/net/http/url.h"

namespace muster::net::internal {

// When a call has taken too long: at a point in time, and after a time in which not a piece of its
// request could be sent and not a byte of its answer came.
struct CallDeadlines {
  SteadyTime total = SteadyTime::max();
  std::chrono::nanoseconds silence = std::chrono::nanoseconds::max();

  // Where a silence that begins now ends, or the whole call if that is sooner.
  SteadyTime Next() const;
};

// One owner thread, which does all the work inside these calls. Any failure closes the connection.
// Asio and OpenSSL throw a std::exception if descriptors, threads or memory run out; that closes
// it, too.
class HttpClientConnection {
 public:
  // The loop must outlive it.
  explicit HttpClientConnection(ClientLoop& loop) : loop_(loop) {}
  ~HttpClientConnection() { Close(); }
  HttpClientConnection(const HttpClientConnection&) = delete;
  HttpClientConnection& operator=(const HttpClientConnection&) = delete;

  // Connects, with TLS for https: then `tls` must not be null, and outlives the connection. The
  // errors of Dial(); UNAUTHENTICATED if one side does not trust the other's certificate.
  absl::Status Open(const HttpUrl& url, boost::asio::ssl::context* tls, SteadyTime deadline);
  bool IsOpen() const { return stream_ != nullptr; }
  // True if it is open and the server is not known to have closed it; otherwise closes it.
  bool IsUsable();
  // Sends `request` and reads its answer, at the same time: a server may answer without reading the
  // whole request. UNAVAILABLE if the connection broke before the answer's end; the reader's fault
  // or the request's error; DEADLINE_EXCEEDED, CANCELLED. Stays open if another request may follow.
  absl::Status Exchange(HttpRequestWriter& request, HttpAnswerReader& reader,
                        const CallDeadlines& deadlines);
  void Close();

 private:
  struct Operation {
    bool done = true;
    HttpStream::Error error = {};
    size_t bytes = 0;
  };
  enum class Sending : uint8_t { kInProgress, kDone, kBroken };

  HttpStream::Done Start(Operation* operation);
  absl::Status Shake(SteadyTime deadline);
  absl::Status SendAndRead(HttpRequestWriter& request, HttpAnswerReader& reader,
                           const CallDeadlines& deadlines);
  absl::Status Wait(const HttpAnswerReader& reader, const CallDeadlines& deadlines);
  absl::Status SendNext(HttpRequestWriter& request);
  absl::Status ReceiveBytes(HttpAnswerReader& reader);
  absl::Status TlsFailure(const HttpStream::Error& error);

  ClientLoop& loop_;
  std::unique_ptr<HttpStream> stream_;  // null: closed
  Operation read_, write_;
  bool ended_one_ = false;  // an operation, since Wait() began
  Sending sending_ = Sending::kDone;
  bool follows_more_ = false;  // bytes arrived after an answer
  std::string chunk_;
};

}  // namespace muster::net::internal
