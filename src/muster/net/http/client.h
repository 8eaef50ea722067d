// The control plane's client: one JSON request over HTTP/1.1, one answer, one deadline. It is built
// on HttpExchange (exchange.h), which clients of other systems use.
//
// Retrying is left to the caller: UNAVAILABLE says that no answer arrived (nobody listens, the
// connection broke), so that an idempotent request can be repeated; DEADLINE_EXCEEDED says that
// time ran out; any other error is the server's answer, with its handler's code and message.
// A message names the method and the URL, never the token.
//
// There is one exception: when a connection kept from an earlier request breaks before a byte of an
// answer arrived, the request is sent once more on a new connection. The server may have acted on
// the first one: requests that change something must be idempotent (name a task's incarnation, an
// epoch).
//
// Connects only to the URL's host: no proxy from the environment, no redirects; "localhost" is this
// machine whatever a name server says. A host's addresses are tried one after the other.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/net/http/message.h"
#include "muster/net/tls/tls.h"
#include "muster/net/token.h"

namespace muster::net {

struct HttpClientOptions {
  std::string url = {};  // "http://127.0.0.1:4242", "https://host:4242"
  std::optional<Token> token = {};
  std::optional<ClientTls> tls = {};  // required for https
  double connect_seconds = 5;         // a part of each request's time
  size_t max_answer_bytes = size_t{64} << 20;
};

// Keeps its connection between requests. One owner thread, except for Cancel().
class HttpClient {
 public:
  // Makes no connection. FAILED_PRECONDITION for https without an authority, and for a token that
  // would go over http to another machine; INVALID_ARGUMENT for text that is not an http or https
  // URL and, with https, for invalid certificates and keys.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create(HttpClientOptions options);
  // Waits for the system's resolver if a call gave up on resolving the host's address.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `target` is a path with its query ("/v1/jobs?wait=5"; EscapeForTarget for parts of it);
  // INVALID_ARGUMENT for one that cannot be used in a request.
  // `seconds` bounds the whole call. A null `body` sends none; an empty answer is null.
  absl::StatusOr<Json> Get(std::string_view target, double seconds);
  absl::StatusOr<Json> Post(std::string_view target, const Json& body, double seconds);
  absl::StatusOr<Json> Call(std::string_view method, std::string_view target, const Json& body,
                            double seconds);
  // Like Get, but returns the answer's text unchanged, for logs and files.
  absl::StatusOr<std::string> GetText(std::string_view target, double seconds);

  // Ends the call in progress, and every later one, with CANCELLED at once. Any thread.
  void Cancel();

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  absl::StatusOr<std::string> Exchange(std::string_view method, std::string_view target,
                                       const Json& body, double seconds);
  std::unique_ptr<State> state_;
};

}  // namespace muster::net
