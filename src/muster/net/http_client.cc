#include "muster/net/http_client.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"

#include "muster/net/http_client_connection.h"
#include "muster/net/tls_context.h"

namespace muster::net {
namespace {

using internal::HttpAnswerReader;
using internal::HttpUrl;
using internal::SteadyTime;

absl::Status CheckSecrecy(const HttpClientOptions& options, const HttpUrl& url) {
  if (url.is_tls) {
    if (options.tls && !options.tls->authority.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat("HTTP client for ", url.base,
               ": https wants the certificate of the job's own authority (muster certs makes it)"));
  }
  if (!options.token || url.is_loopback) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("HTTP client for ", url.base,
             ": the token would cross the network readable for all; use https"));
}

// At least a millisecond, at most a day.
SteadyTime After(double seconds) {
  constexpr double kLeast = 0.001, kDay = 86'400;
  const std::chrono::duration<double> bounded(seconds > kLeast ? std::min(seconds, kDay) : kLeast);
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(bounded);
}

bool IsMethod(std::string_view method) {
  return !method.empty() &&
         std::all_of(method.begin(), method.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

struct HttpClient::State {
  State(HttpClientOptions with, HttpUrl to, std::unique_ptr<boost::asio::ssl::context> context)
      : options(std::move(with)),
        url(std::move(to)),
        tls(std::move(context)),
        connection(loop, url, tls.get()) {}

  std::string Request(std::string_view method, std::string_view target,
                      const std::string& body) const;
  absl::Status Open(SteadyTime deadline);
  // The answer, read to its end. TrySend throws where descriptors, threads or memory run out.
  absl::StatusOr<HttpAnswerReader> Send(std::string_view method, std::string_view request,
                                        SteadyTime deadline);
  absl::StatusOr<HttpAnswerReader> TrySend(std::string_view method, std::string_view request,
                                           SteadyTime deadline);

  const HttpClientOptions options;
  const HttpUrl url;
  const std::unique_ptr<boost::asio::ssl::context> tls;
  internal::ClientLoop loop;
  internal::HttpClientConnection connection;  // last: it uses all of them
};

std::string HttpClient::State::Request(std::string_view method, std::string_view target,
                                       const std::string& body) const {
  std::string text = StrCat(method, " ", url.path, target, " HTTP/1.1\r\nHost: ", url.authority,
                            "\r\nAccept: */*\r\n");
  if (!body.empty() || method != "GET") {
    text += StrCat("Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n");
  }
  if (!options.token) return StrCat(text, "\r\n", body);
  constexpr std::string_view kScheme = "Authorization: Bearer ";
  const std::string& token = options.token->Reveal();
  // No growing behind it: that would leave a copy of the token.
  text.reserve(text.size() + kScheme.size() + token.size() + 4 + body.size());
  text.append(kScheme).append(token).append("\r\n\r\n").append(body);
  return text;
}

absl::Status HttpClient::State::Open(SteadyTime deadline) {
  return connection.Open(std::min(deadline, After(options.connect_seconds)));
}

absl::StatusOr<HttpAnswerReader> HttpClient::State::TrySend(std::string_view method,
                                                            std::string_view request,
                                                            SteadyTime deadline) {
  for (bool kept = connection.IsUsable();; kept = false) {
    if (!kept) MUSTER_RETURN_IF_ERROR(Open(deadline));
    HttpAnswerReader answer(method == "HEAD", options.max_answer_bytes);
    const absl::Status status = connection.Exchange(request, answer, deadline);
    if (status.ok()) return answer;
    // The server may have ended a kept connection while the request was on its way.
    if (!kept || !absl::IsUnavailable(status) || answer.started()) return status;
  }
}

absl::StatusOr<HttpAnswerReader> HttpClient::State::Send(std::string_view method,
                                                         std::string_view request,
                                                         SteadyTime deadline) {
  try {
    return TrySend(method, request, deadline);
  } catch (const std::exception& error) {
    connection.Close();
    return absl::ResourceExhaustedError(error.what());
  }
}

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(HttpClientOptions options) {
  MUSTER_ASSIGN_OR_RETURN(HttpUrl url, internal::ParseHttpUrl(options.url));
  MUSTER_RETURN_IF_ERROR(CheckSecrecy(options, url));
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (url.is_tls) {
    absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> made =
        internal::MakeClientContext(*options.tls);
    MUSTER_RETURN_IF_ERROR(Annotate(made.status(), StrCat("HTTP client for ", url.base)));
    tls = *std::move(made);
  }
  try {  // Asio throws when descriptors run out
    auto state = std::make_unique<State>(std::move(options), std::move(url), std::move(tls));
    return std::unique_ptr<HttpClient>(new HttpClient(std::move(state)));
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(StrCat("HTTP client: ", error.what()));
  }
}

absl::StatusOr<std::string> HttpClient::Exchange(std::string_view method, std::string_view target,
                                                 const Json& body, double seconds) {
  const SteadyTime deadline = After(seconds);
  const std::string what = StrCat(method, " ", state_->url.base, target);
  if (!IsMethod(method) || !target.starts_with('/') || !internal::IsSendable(target)) {
    return absl::InvalidArgumentError(
        StrCat("HTTP client for ", state_->url.base,
               ": a request wants a method such as GET and a target that starts with / and has no "
               "spaces or control characters (EscapeForTarget)"));
  }
  std::string request = state_->Request(
      method, target,
      body.is_null() ? "" : body.dump(-1, ' ', false, Json::error_handler_t::replace));
  const absl::Cleanup wipe = [&] { OPENSSL_cleanse(request.data(), request.size()); };
  absl::StatusOr<HttpAnswerReader> answer = state_->Send(method, request, deadline);
  if (absl::IsCancelled(answer.status())) return absl::CancelledError(StrCat(what, ": cancelled"));
  MUSTER_RETURN_IF_ERROR(Annotate(answer.status(), what));
  MUSTER_RETURN_IF_ERROR(Annotate(StatusOfAnswer(answer->status(), answer->body()), what));
  return std::move(answer->body());
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

void HttpClient::Cancel() { state_->loop.Cancel(); }

}  // namespace muster::net
