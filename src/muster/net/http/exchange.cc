#include "muster/net/http/exchange.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "muster/net/http/client_pool.h"
#include "muster/net/http/request_head.h"

namespace muster::net {
namespace {

using internal::CallDeadlines;
using internal::ClientLoop;
using internal::ClientPool;
using internal::HttpAnswerReader;
using internal::HttpClientConnection;
using internal::HttpRequestWriter;
using internal::HttpUrl;
using internal::SteadyTime;

absl::Status CheckExchange(const HttpExchangeOptions& options, const HttpUrl& url) {
  if (url.is_tls && options.pool->connections().tls() == nullptr) {
    return absl::FailedPreconditionError(
        StrCat("HTTP client for ", url.base, ": https wants a pool with TLS"));
  }
  if (!options.token || url.is_tls || url.is_loopback) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("HTTP client for ", url.base,
             ": the token would cross the network readable for all; use https"));
}

std::string GetName(const HttpUrl& url, const HttpCall& call) {
  if (!call.what.empty()) return call.what;
  if (!internal::IsSendable(call.method) || !internal::IsSendable(call.target)) return url.base;
  return StrCat(call.method, " ", url.base, call.target.substr(0, call.target.find('?')));
}

}  // namespace

struct HttpExchange::State {
  State(HttpExchangeOptions with, HttpUrl to) : options(std::move(with)), url(std::move(to)) {}

  // Throws if there are no descriptors, threads or memory left.
  absl::StatusOr<HttpAnswerHead> TrySend(const HttpCall& call, const HttpReceiver& receiver,
                                         const HttpTimeouts& timeouts);
  absl::StatusOr<HttpAnswerHead> SendOn(HttpClientConnection& connection, const HttpCall& call,
                                        const HttpReceiver& receiver, const HttpTimeouts& timeouts,
                                        const CallDeadlines& deadlines, HttpRequestWriter& request);

  const HttpExchangeOptions options;
  const HttpUrl url;
  std::atomic<bool> cancelled = false;
  std::mutex mutex;
  std::set<ClientLoop*> active = {};  // of the calls in progress; guarded by mutex
};

// While this object lives, Cancel() reaches the loop.
class HttpExchange::ActiveCall {
 public:
  ActiveCall(State* state, ClientLoop* loop) : state_(state), loop_(loop) {
    const std::lock_guard lock(state_->mutex);
    loop_->Renew();
    if (state_->cancelled) loop_->Cancel();
    state_->active.insert(loop_);
  }
  ~ActiveCall() {
    const std::lock_guard lock(state_->mutex);
    state_->active.erase(loop_);
  }
  ActiveCall(const ActiveCall&) = delete;
  ActiveCall& operator=(const ActiveCall&) = delete;

 private:
  State* const state_;
  ClientLoop* const loop_;
};

absl::StatusOr<HttpAnswerHead> HttpExchange::State::TrySend(const HttpCall& call,
                                                            const HttpReceiver& receiver,
                                                            const HttpTimeouts& timeouts) {
  const CallDeadlines deadlines = {.total = internal::After(timeouts.total_seconds),
                                   .silence = internal::ToDuration(timeouts.silence_seconds)};
  MUSTER_ASSIGN_OR_RETURN(
      std::string head,
      internal::MakeRequestHead(url, call, options.token ? &*options.token : nullptr));
  // The call wipes the head, which is not used after the connection is given back.
  HttpRequestWriter request(std::move(head), call.body.get());
  MUSTER_ASSIGN_OR_RETURN(const ClientPool::Lease lease,
                          options.pool->connections().Take(url, deadlines.Next(), cancelled));
  const ActiveCall reached(this, &lease.loop());
  return SendOn(lease.connection(), call, receiver, timeouts, deadlines, request);
}

absl::StatusOr<HttpAnswerHead> HttpExchange::State::SendOn(
    HttpClientConnection& connection, const HttpCall& call, const HttpReceiver& receiver,
    const HttpTimeouts& timeouts, const CallDeadlines& deadlines, HttpRequestWriter& request) {
  ClientPool& pool = options.pool->connections();
  if (!request.Restart()) {
    return absl::FailedPreconditionError("its body was read before and cannot be read again");
  }
  for (bool kept = connection.IsOpen();; kept = false) {
    if (!kept) {
      const SteadyTime connected = internal::After(timeouts.connect_seconds);
      MUSTER_RETURN_IF_ERROR(
          connection.Open(url, pool.tls(), std::min(deadlines.total, connected)));
      pool.CountOpened();
    }
    HttpAnswerReader answer(call.method == "HEAD", receiver);
    const absl::Status status = connection.Exchange(request, answer, deadlines);
    if (status.ok()) return std::move(answer.head());
    // The server may have closed a kept connection while the request was on its way.
    const bool broke_early =
        kept && absl::IsUnavailable(status) && !answer.started() && !request.failed();
    if (!broke_early || !call.may_be_repeated || !request.Restart()) return status;
  }
}

HttpExchange::HttpExchange(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpExchange::~HttpExchange() = default;

absl::StatusOr<std::unique_ptr<HttpExchange>> HttpExchange::Create(HttpExchangeOptions options) {
  MUSTER_ASSIGN_OR_RETURN(HttpUrl url, internal::ParseHttpUrl(options.url));
  if (options.pool == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(options.pool, HttpPool::Create({}));
  }
  MUSTER_RETURN_IF_ERROR(CheckExchange(options, url));
  return std::unique_ptr<HttpExchange>(
      new HttpExchange(std::make_unique<State>(std::move(options), std::move(url))));
}

absl::StatusOr<HttpAnswerHead> HttpExchange::Send(const HttpCall& call,
                                                  const HttpReceiver& receiver,
                                                  const HttpTimeouts& timeouts) {
  absl::StatusOr<HttpAnswerHead> head;
  try {
    head = state_->TrySend(call, receiver, timeouts);
  } catch (const std::exception& error) {
    head = absl::ResourceExhaustedError(error.what());
  }
  MUSTER_RETURN_IF_ERROR(Annotate(head.status(), GetName(state_->url, call)));
  return head;
}

absl::StatusOr<HttpAnswer> HttpExchange::Fetch(const HttpCall& call, size_t max_body_bytes,
                                               const HttpTimeouts& timeouts) {
  HttpAnswer answer;
  const auto append = [&](std::string_view bytes) {
    answer.body += bytes;
    return absl::OkStatus();
  };
  MUSTER_ASSIGN_OR_RETURN(answer.head,
                          Send(call, {.body = append, .max_body_bytes = max_body_bytes}, timeouts));
  return answer;
}

void HttpExchange::Cancel() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->cancelled = true;
    for (ClientLoop* const loop : state_->active) loop->Cancel();
  }
  state_->options.pool->connections().Wake();
}

}  // namespace muster::net
