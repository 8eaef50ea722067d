// The control plane's HTTP/1.1 server: handlers by method and path, JSON bodies, answers that may
// be sent later (long polls), a token, TLS.
//
// Threads: one io thread, made by Start, runs every handler and all work of the connections; so a
// handler must not block, and handlers need no locks against each other. Post() runs other work on
// that thread. HttpReply may be used from any thread.
//
// Growing content (logs) is served in pieces: a GET with an offset, a long poll at its end. A
// reader continues where it was after any interruption, and a slow one costs no memory here.
//
// An unauthenticated peer costs no state: limits and the token are checked from the header, before
// a body is read or memory allocated for it; see limits.h and docs/security.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/http/call.h"
#include "muster/net/http/limits.h"
#include "muster/net/http/message.h"
#include "muster/net/tls/tls.h"
#include "muster/net/token.h"

namespace muster::net {

namespace internal {
class ReplyState;
struct ServerState;
}  // namespace internal

// A handler answers its request through this object, at once or later. Copies answer the same
// request; the first answer counts, later ones are dropped. When the last copy is destroyed without
// an answer, the server answers 500. Any thread; harmless after the server stopped.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<internal::ReplyState> state) : state_(std::move(state)) {}

  void Send(HttpResponse response) const;
  void SendJson(const Json& body) const { Send(JsonResponse(body)); }
  void SendError(const absl::Status& status) const { Send(ErrorResponse(status)); }

  // Ends a long poll: `response` is sent if nothing else was within `seconds`. The last call
  // counts; never later than HttpLimits::answer_seconds after the request.
  void AnswerAfter(double seconds, HttpResponse response) const;

  // Whether an answer is pointless: one was sent, or the peer disconnected.
  bool over() const;

 private:
  std::shared_ptr<internal::ReplyState> state_;
};

// Runs on the io thread. An exception it throws is answered by 400 for a JSON exception (the body
// has another shape than the handler expected), else by 500.
using HttpHandler = std::function<void(const HttpRequest& request, HttpReply reply)>;

// A request as it was sent, for HttpServerOptions::forward.
struct ForwardedRequest {
  std::string method = {};
  std::string target = {};  // with its query; it is a path that ParseTarget() accepts
  HttpFields fields = {};
  std::string body = {};
};

struct HttpRoute {
  std::string method = {};
  std::string path = {};  // "/v1/jobs/{job}", see router.h
  HttpHandler handler = {};
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // numeric, not a name
  uint16_t port = 0;                  // 0: the system chooses
  std::optional<Token> token = {};    // every request must carry it
  std::optional<ServerTls> tls = {};
  // Lets browsers read (GET) with a key derived from the token, which must be there
  // (browser_access.h).
  bool browsers = false;
  // Answers every GET without a body, from any sender and at any address, without token and TLS.
  // Only for OpenServer (open_server.h).
  bool open = false;
  // Takes every request in place of the routes. Only for HttpForwarder (forwarder.h), on loopback
  // and without a token: requests of pages that this server itself has sent are answered, too.
  std::function<void(ForwardedRequest request, HttpReply reply)> forward = {};
  HttpLimits limits = {};
};

// Since the start; for a status page and tests.
struct HttpCounters {
  uint64_t accepted = 0;        // connections
  uint64_t requests = 0;        // passed to a handler
  uint64_t wrong_tokens = 0;    // or none at all
  uint64_t evicted = 0;         // strangers closed for newer ones
  uint64_t timed_out = 0;       // closed at a deadline
  uint64_t open_strangers = 0;  // now
  uint64_t open_others = 0;     // now
};

class HttpServer {
 public:
  // The server listens when it returns. FAILED_PRECONDITION for an address beyond loopback without
  // token and TLS; ALREADY_EXISTS for a port that is taken; INVALID_ARGUMENT for an invalid
  // address, for conflicting routes, for a certificate that does not fit.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                           std::vector<HttpRoute> routes);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Accepts no more connections, answers open requests with 503, waits up to a second until those
  // answers are written, closes, and joins the io thread; then no handler runs any more. Call it
  // from any thread but the io thread; a second call does nothing.
  void Stop();

  uint16_t port() const;
  std::string url() const;  // "https://127.0.0.1:4242"
  // `path` of this server as a URL that a browser can open (HttpServerOptions::browsers). A secret:
  // it contains a key for reading.
  std::string BrowserUrl(std::string_view path) const;

  // Runs `work` on the io thread, in the order of the calls; drops it once Stop has begun.
  void Post(std::function<void()> work);

  HttpCounters counters() const;  // any thread

 private:
  explicit HttpServer(std::unique_ptr<internal::ServerState> state);
  std::unique_ptr<internal::ServerState> state_;
};

}  // namespace muster::net
