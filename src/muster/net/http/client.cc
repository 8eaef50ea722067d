#include "muster/net/http/client.h"

#include <algorithm>
#include <utility>

#include "muster/net/http/exchange.h"
#include "muster/net/http/url.h"

namespace muster::net {
namespace {

using internal::HttpUrl;

constexpr double kClientDaySeconds = 86'400.0;

absl::Status CheckSecrecy(const HttpClientOptions& options, const HttpUrl& url) {
  if (!url.is_tls || (options.tls && !options.tls->authority.empty())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("HTTP client for ", url.base,
             ": https wants the certificate of the job's own authority (muster certs makes it)"));
}

absl::StatusOr<std::unique_ptr<HttpExchange>> MakeExchange(HttpClientOptions options,
                                                           const HttpUrl& url) {
  HttpPoolOptions pool_options = {.max_connections = 1, .idle_seconds = kClientDaySeconds};
  if (url.is_tls) pool_options.tls = std::move(options.tls);
  absl::StatusOr<std::shared_ptr<HttpPool>> pool = HttpPool::Create(std::move(pool_options));
  MUSTER_RETURN_IF_ERROR(Annotate(pool.status(), StrCat("HTTP client for ", url.base)));
  HttpExchangeOptions exchange = {.url = std::move(options.url), .pool = *std::move(pool)};
  if (options.token) {
    MUSTER_ASSIGN_OR_RETURN(exchange.token,
                            BearerToken::FromText(options.token->Reveal(), "the client's options"));
  }
  return HttpExchange::Create(std::move(exchange));
}

}  // namespace

struct HttpClient::State {
  State(HttpUrl to, double connect, size_t max_bytes, std::unique_ptr<HttpExchange> with)
      : url(std::move(to)),
        connect_seconds(connect),
        max_answer_bytes(max_bytes),
        exchange(std::move(with)) {}

  const HttpUrl url;
  const double connect_seconds;
  const size_t max_answer_bytes;
  const std::unique_ptr<HttpExchange> exchange;
};

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(HttpClientOptions options) {
  MUSTER_ASSIGN_OR_RETURN(HttpUrl url, internal::ParseHttpUrl(options.url));
  MUSTER_RETURN_IF_ERROR(CheckSecrecy(options, url));
  const double connect_seconds = options.connect_seconds;
  const size_t max_bytes = options.max_answer_bytes;
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<HttpExchange> exchange,
                          MakeExchange(std::move(options), url));
  return std::unique_ptr<HttpClient>(new HttpClient(
      std::make_unique<State>(std::move(url), connect_seconds, max_bytes, std::move(exchange))));
}

absl::StatusOr<std::string> HttpClient::Exchange(std::string_view method, std::string_view target,
                                                 const Json& body, double seconds) {
  const std::string what = StrCat(method, " ", state_->url.base, target);
  HttpCall call = {.method = std::string(method), .target = std::string(target)};
  // The exchange refuses texts that cannot be sent. Its message must not repeat them, since they
  // may have line breaks.
  if (internal::IsSendable(method) && internal::IsSendable(target)) call.what = what;
  if (!body.is_null()) {
    call.body = MakeTextBody(body.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  if (!body.is_null() || method != "GET") {
    call.fields.push_back({.name = "Content-Type", .value = "application/json"});
  }
  const HttpTimeouts timeouts = {.total_seconds = std::min(seconds, kClientDaySeconds),
                                 .silence_seconds = kClientDaySeconds,
                                 .connect_seconds = state_->connect_seconds};
  absl::StatusOr<HttpAnswer> answer =
      state_->exchange->Fetch(call, state_->max_answer_bytes, timeouts);
  if (absl::IsUnauthenticated(answer.status())) {
    return absl::UnauthenticatedError(
        StrCat(std::string(answer.status().message()),
               " (is this server of the same job, and its certificate for this name?)"));
  }
  MUSTER_RETURN_IF_ERROR(answer.status());
  MUSTER_RETURN_IF_ERROR(Annotate(ParseErrorResponse(answer->head.status, answer->body), what));
  return std::move(answer->body);
}

absl::StatusOr<Json> HttpClient::Call(std::string_view method, std::string_view target,
                                      const Json& body, double seconds) {
  MUSTER_ASSIGN_OR_RETURN(const std::string answer, Exchange(method, target, body, seconds));
  if (answer.empty()) return Json();
  absl::StatusOr<Json> parsed = ParseJson(answer, "answer");
  if (parsed.ok()) return parsed;
  return Annotate(absl::InternalError(parsed.status().message()),
                  StrCat(method, " ", state_->url.base, target));
}

absl::StatusOr<Json> HttpClient::Get(std::string_view target, double seconds) {
  return Call("GET", target, Json(), seconds);
}

absl::StatusOr<Json> HttpClient::Post(std::string_view target, const Json& body, double seconds) {
  return Call("POST", target, body, seconds);
}

absl::StatusOr<std::string> HttpClient::GetText(std::string_view target, double seconds) {
  return Exchange("GET", target, Json(), seconds);
}

void HttpClient::Cancel() { state_->exchange->Cancel(); }

}  // namespace muster::net
