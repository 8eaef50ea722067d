// A client's connection to one server: opened, used for one request after the other, closed.
// Included by .cc files of this layer only: Asio takes seconds to compile.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ssl/context.hpp>

#include "muster/base/status.h"
#include "muster/net/http_answer_reader.h"
#include "muster/net/http_client_loop.h"
#include "muster/net/http_stream.h"
#include "muster/net/http_url.h"

namespace muster::net::internal {

// One owner thread, which does all the work inside these calls. Any failure closes the connection.
// Asio and OpenSSL throw a std::exception if descriptors, threads or memory run out: call Close()
// then.
class HttpClientConnection {
 public:
  // The arguments must outlive it. Without `tls` the connection is plain.
  HttpClientConnection(ClientLoop& loop, const HttpUrl& url, boost::asio::ssl::context* tls)
      : loop_(loop), url_(url), tls_(tls) {}
  ~HttpClientConnection() { Close(); }
  HttpClientConnection(const HttpClientConnection&) = delete;
  HttpClientConnection& operator=(const HttpClientConnection&) = delete;

  // Connects, with TLS if given. The errors of Dial(); UNAUTHENTICATED if one side does not trust
  // the other's certificate.
  absl::Status Open(SteadyTime deadline);
  // True if it was opened and the server is not known to have closed it.
  bool IsUsable();
  // Sends `request` and reads its answer, at the same time: a server may answer without reading the
  // whole request. UNAVAILABLE if the connection broke before the answer's end; the reader's fault;
  // DEADLINE_EXCEEDED, CANCELLED. Stays open if another request may follow.
  absl::Status Exchange(std::string_view request, HttpAnswerReader& reader, SteadyTime deadline);
  void Close();

 private:
  struct Operation {
    bool done = true;
    HttpStream::Error error = {};
    size_t bytes = 0;
  };

  static HttpStream::Done Start(Operation* operation);
  absl::Status Shake(SteadyTime deadline);
  absl::Status ReadAnswer(HttpAnswerReader& reader, SteadyTime deadline);
  absl::Status TlsFailure(const HttpStream::Error& error);

  ClientLoop& loop_;
  const HttpUrl& url_;
  boost::asio::ssl::context* const tls_;
  std::unique_ptr<HttpStream> stream_;  // null: closed
  Operation read_, write_;
  bool follows_more_ = false;  // bytes arrived after an answer
  std::string chunk_;
};

}  // namespace muster::net::internal
