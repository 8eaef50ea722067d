#include "muster/net/http/server.h"

#include <system_error>
#include <thread>
#include <utility>

#include "muster/net/http/server_state.h"
#include "muster/net/listen.h"
#include "muster/net/signals_blocked.h"
#include "muster/net/tls/tls_context.h"

namespace muster::net {
namespace {

absl::Status CheckExposure(const HttpServerOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const internal::NumericAddress address,
                          internal::ParseAddress(options.address));
  if (options.open) return absl::OkStatus();
  if (options.browsers && !options.token) {
    return absl::InvalidArgumentError("browsers need a server with a token");
  }
  if (address.is_loopback || (options.token && options.tls)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("listen on ", internal::HostPort(options.address, options.port),
             ": other machines reach this address, so it needs a token and TLS; missing: ",
             options.token ? "" : "the token", !options.token && !options.tls ? " and " : "",
             options.tls ? "" : "a certificate with its key (muster certs makes them)",
             "; or listen on 127.0.0.1"));
}

}  // namespace

HttpServer::HttpServer(std::unique_ptr<internal::ServerState> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                              std::vector<HttpRoute> routes) {
  MUSTER_RETURN_IF_ERROR(CheckExposure(options));
  std::vector<HttpRouter::Pattern> patterns;
  std::vector<HttpHandler> handlers;
  for (HttpRoute& route : routes) {
    patterns.push_back({.method = std::move(route.method), .path = std::move(route.path)});
    handlers.push_back(std::move(route.handler));
  }
  MUSTER_ASSIGN_OR_RETURN(HttpRouter router, HttpRouter::Create(patterns));
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (options.tls) {
    MUSTER_ASSIGN_OR_RETURN(tls, internal::MakeServerContext(*options.tls));
  }
  try {  // Asio throws when descriptors or threads run out
    auto state = std::make_unique<internal::ServerState>(std::move(options), std::move(router),
                                                         std::move(handlers), std::move(tls));
    MUSTER_RETURN_IF_ERROR(state->Listen());
    const internal::SignalsBlocked blocked;
    state->thread = std::thread([raw = state.get()] { raw->Run(); });
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(StrCat("start an HTTP server: ", error.what()));
  }
}

void HttpServer::Stop() {
  if (!state_->thread.joinable()) return;
  state_->gate->Post([state = state_.get()] { state->BeginStop(); });
  state_->thread.join();
  state_->gate->Close();
}

uint16_t HttpServer::port() const { return state_->port; }

std::string HttpServer::url() const {
  return StrCat(state_->options.tls ? "https://" : "http://",
                internal::HostPort(state_->options.address, state_->port));
}

std::string HttpServer::BrowserUrl(std::string_view path) const {
  return StrCat(url(), state_->browsers ? state_->browsers->TargetWithKey(path) : path);
}

void HttpServer::Post(std::function<void()> work) {
  state_->gate->Post([state = state_.get(), work = std::move(work)] {
    if (!state->stopping()) work();
  });
}

HttpCounters HttpServer::counters() const {
  return {.accepted = state_->accepted,
          .requests = state_->requests,
          .wrong_tokens = state_->wrong_tokens,
          .evicted = state_->evicted,
          .timed_out = state_->timed_out,
          .open_strangers = state_->open_strangers,
          .open_others = state_->open_others};
}

}  // namespace muster::net
