#include "muster/net/http/forwarder.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_split.h"

#include "muster/net/http/server.h"
#include "muster/net/signals_blocked.h"

namespace muster::net {
namespace {

constexpr size_t kMaxBodyBytes = size_t{16} << 20;  // of a request
// That describe an answer's body, beside its type.
constexpr std::array<const char*, 4> kAnswerFields = {"Content-Encoding", "Content-Language",
                                                      "Content-Security-Policy", "Vary"};

// Whether the path leads upwards. Segments are looked at as a server sees them that decodes first.
bool LeadsUp(std::string_view target) {
  const auto parsed = ParseTarget(target);
  if (!parsed.ok()) return true;
  return std::any_of(parsed->segments.begin(), parsed->segments.end(), [](const auto& segment) {
    const std::vector<std::string> parts = absl::StrSplit(segment, absl::ByAnyChar("/\\"));
    return std::any_of(parts.begin(), parts.end(),
                       [](const std::string& part) { return part == "." || part == ".."; });
  });
}

std::string WithoutPrefix(const std::string& target, const std::string& prefix) {
  if (prefix.empty() || !target.starts_with(prefix)) return target;
  const std::string rest = target.substr(prefix.size());
  if (rest.empty() || rest.front() == '?') return "/" + rest;
  return rest.front() == '/' ? rest : target;
}

}  // namespace

struct HttpForwarder::State {
  struct Waiting {
    ForwardedRequest request;
    HttpReply reply;
  };
  State(HttpForwarderOptions with, Send how) : options(std::move(with)), send(std::move(how)) {}

  void Put(ForwardedRequest request, HttpReply reply) {
    {
      const std::lock_guard lock(mutex);
      waiting.push_back({std::move(request), std::move(reply)});
    }
    changed.notify_one();
  }
  void Work(const std::stop_token& stop);
  HttpResponse Forward(ForwardedRequest request) const;

  const HttpForwarderOptions options;
  const Send send;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<Waiting> waiting = {};  // guarded by mutex
  std::unique_ptr<HttpServer> server = {};
  std::vector<std::jthread> threads = {};
};

void HttpForwarder::State::Work(const std::stop_token& stop) {
  while (true) {
    std::unique_lock lock(mutex);
    if (!changed.wait(lock, stop, [this] { return !waiting.empty(); })) return;
    Waiting next = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    if (!next.reply.over()) next.reply.Send(Forward(std::move(next.request)));
  }
}

HttpResponse HttpForwarder::State::Forward(ForwardedRequest request) const {
  if (LeadsUp(request.target)) {
    return ErrorResponse(absl::InvalidArgumentError("the path must not have . or .. in it"));
  }
  HttpCall call = {.method = std::move(request.method),
                   .target = options.prefix + WithoutPrefix(request.target, options.prefix)};
  for (const std::string& name : options.request_fields) {
    if (const std::string* const value = FindField(request.fields, name)) {
      call.fields.push_back({name, *value});
    }
  }
  if (!request.body.empty()) call.body = MakeTextBody(std::move(request.body));
  absl::StatusOr<HttpAnswer> answer = send(std::move(call));
  if (!answer.ok()) return ErrorResponse(answer.status());
  HttpResponse response = {.status = answer->head.status, .body = std::move(answer->body)};
  const std::string* const type = answer->head.Find("Content-Type");
  response.content_type = type == nullptr ? "application/octet-stream" : *type;
  for (const char* const name : kAnswerFields) {
    if (const std::string* const value = answer->head.Find(name)) response.fields[name] = *value;
  }
  if (const std::string* const to = answer->head.Find("Location")) {
    response.fields["Location"] = WithoutPrefix(*to, options.prefix);
  }
  return response;
}

HttpForwarder::HttpForwarder(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpForwarder::~HttpForwarder() {
  if (state_->server != nullptr) state_->server->Stop();
  for (std::jthread& thread : state_->threads) thread.request_stop();
}

absl::StatusOr<std::unique_ptr<HttpForwarder>> HttpForwarder::Start(HttpForwarderOptions options,
                                                                    Send send) {
  std::unique_ptr<HttpForwarder> made(
      new HttpForwarder(std::make_unique<State>(std::move(options), std::move(send))));
  State* const state = made->state_.get();
  HttpServerOptions server;
  server.port = state->options.port;
  server.limits.body_bytes = kMaxBodyBytes;
  server.forward = [state](ForwardedRequest request, HttpReply reply) {
    state->Put(std::move(request), std::move(reply));
  };
  MUSTER_ASSIGN_OR_RETURN(state->server, HttpServer::Start(std::move(server), {}));
  const internal::SignalsBlocked blocked;
  for (int i = 0; i < state->options.calls; ++i) {
    state->threads.emplace_back([state](const std::stop_token& stop) { state->Work(stop); });
  }
  return made;
}

std::string HttpForwarder::url() const { return state_->server->url(); }

}  // namespace muster::net
