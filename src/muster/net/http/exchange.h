// An HTTP/1.1 client: one request, whose body comes from a source, and one answer, whose head and
// body are handed on as they arrive. It is for other systems' interfaces (Kubernetes' API with its
// watches, WebHDFS); HttpClient, the control plane's client for JSON, is built on it.
//
// Every status of the server is an answer, also 307, 409, 429 and 503: the caller looks at
// HttpAnswerHead. Redirects are not followed. The errors are those of the transport:
//   UNAVAILABLE         no answer arrived, or not all of it: nobody listens, the connection broke,
//                       the bytes were no HTTP. An idempotent request can be repeated
//   UNAUTHENTICATED     one side does not trust the other's certificate
//   DEADLINE_EXCEEDED   a time of HttpTimeouts ran out
//   CANCELLED           Cancel() was called
//   RESOURCE_EXHAUSTED  the answer is above a limit; descriptors, threads or memory ran out
//   INVALID_ARGUMENT    the method, the target or a field cannot be used in a request
// and those of reading the token's file, of the request's source and of the answer's receiver.
// A message names the method and the URL without its query, never a token or a field's value.
//
// A request that gets no byte of an answer on a connection that was kept from an earlier one is
// sent once more, on a new connection, if its body can be read again and HttpCall::may_be_repeated
// allows it: the server may have closed the connection while the request was on its way.
//
// Connects only to the URL's host: no proxy from the environment; "localhost" is this machine,
// whatever a name server says. A host's addresses are tried one after the other. Content codings
// are not asked for and not decoded.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "muster/base/status.h"
#include "muster/net/http/bearer_token.h"
#include "muster/net/http/call.h"
#include "muster/net/http/pool.h"

namespace muster::net {

struct HttpExchangeOptions {
  // "https://10.0.0.1:6443", "http://namenode:9870/webhdfs": its path precedes every target.
  std::string url = {};
  std::optional<BearerToken> token = {};
  // The pool, which may be shared with other exchanges. Null: the exchange makes its own, without
  // TLS.
  std::shared_ptr<HttpPool> pool = {};
};

// All times are in seconds. The source and the receiver are not interrupted, and the time that they
// take does not count as silence.
struct HttpTimeouts {
  // The whole call with its waiting for a free connection. Infinite by default, for a watch that
  // must end only when its server is silent.
  double total_seconds = std::numeric_limits<double>::infinity();
  // Between two bytes: while no piece of the request (64 KiB) can be sent and nothing of the answer
  // arrives; also the wait for a free connection.
  double silence_seconds = 60;
  double connect_seconds = 5;  // resolving, connecting, TLS
};

struct HttpAnswer {
  HttpAnswerHead head = {};
  std::string body = {};
};

// One server. Any thread; calls run at the same time, each on a connection of its own.
class HttpExchange {
 public:
  // Makes no connection. INVALID_ARGUMENT for text that is not an http or https URL;
  // FAILED_PRECONDITION for https with a pool without TLS, and for a token that would go over http
  // to another machine.
  static absl::StatusOr<std::unique_ptr<HttpExchange>> Create(HttpExchangeOptions options);
  // No call may be in progress.
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  // Returns the answer's head once the whole answer has arrived.
  absl::StatusOr<HttpAnswerHead> Send(const HttpCall& call, const HttpReceiver& receiver,
                                      const HttpTimeouts& timeouts);
  // Like Send, for an answer that fits into memory: RESOURCE_EXHAUSTED for a longer body.
  absl::StatusOr<HttpAnswer> Fetch(const HttpCall& call, size_t max_body_bytes,
                                   const HttpTimeouts& timeouts);

  // Ends the calls in progress, and every later one, with CANCELLED at once. To end one call alone,
  // such as a watch, give it an exchange of its own on the same pool.
  void Cancel();

 private:
  struct State;
  class ActiveCall;
  explicit HttpExchange(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace muster::net
