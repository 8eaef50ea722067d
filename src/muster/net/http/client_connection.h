// A client's connection to one server: opened, used for one request after the other, closed.
// Included by .cc files of this layer only: Asio takes seconds to compile.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
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

// The limits of a call: a point in time, and the longest time in which no piece of its request is
// sent and no byte of its answer arrives.
struct CallDeadlines {
  SteadyTime total = SteadyTime::max();
  std::chrono::nanoseconds silence = std::chrono::nanoseconds::max();

  // The time at which a silence that begins now ends, or the whole call if that is sooner.
  SteadyTime Next() const;
};

// One owner thread, which does all the work inside these calls. Any failure closes the connection.
// Asio and OpenSSL throw a std::exception if descriptors, threads or memory run out; such an
// exception closes it, too.
class HttpClientConnection {
 public:
  // The loop must outlive the connection.
  explicit HttpClientConnection(ClientLoop& loop) : loop_(loop) {}
  ~HttpClientConnection() { Close(); }
  HttpClientConnection(const HttpClientConnection&) = delete;
  HttpClientConnection& operator=(const HttpClientConnection&) = delete;

  // Connects, with TLS for https: `tls` must then not be null and must outlive the connection.
  // Errors are those of Dial(), and UNAUTHENTICATED if one side does not trust the other's
  // certificate.
  absl::Status Open(const HttpUrl& url, boost::asio::ssl::context* tls, SteadyTime deadline);
  bool IsOpen() const { return stream_ != nullptr; }
  // Returns true if it is open and the server is not known to have closed it; otherwise closes it.
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
  void StartRead(const HttpAnswerReader& reader);
  void SetLeastRead(size_t size);
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
  size_t chunk_bytes_ = 0;     // of the open connection
  std::string chunk_;
  std::span<char> into_;   // chunk_, or the receiver's room
  size_t least_read_ = 1;  // of stream_
};

}  // namespace muster::net::internal
