#include "muster/net/http/server_state.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"

#include "muster/net/listen.h"

namespace muster::net::internal {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kAcceptsAtOnce = 64;  // then other work gets its turn
constexpr auto kStopGrace = std::chrono::seconds(1);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

// Returns the name in a Host field, without port and brackets.
std::string_view HostName(std::string_view field) {
  if (!field.empty() && field.front() == '[') return field.substr(1, field.find(']') - 1);
  return field.substr(0, field.find(':'));
}

bool NamesLoopback(std::string_view host_field) {
  const std::string name(HostName(host_field));
  if (absl::EqualsIgnoreCase(name, "localhost")) return true;
  const absl::StatusOr<NumericAddress> address = ParseAddress(name);
  return address.ok() && address->is_loopback;
}

// Whether a web page made the request that this server did not send itself: one of another host,
// another port or another site (Origin is sent with each POST).
bool IsOfAnotherPage(const HttpRequestReader& reader) {
  const std::string_view origin = reader.Field("Origin");
  const std::string_view site = reader.Field("Sec-Fetch-Site");
  const bool is_link = reader.method() == "GET" && reader.Field("Sec-Fetch-Mode") == "navigate" &&
                       reader.Field("Sec-Fetch-Dest") == "document";
  if (!site.empty() && site != "same-origin" && site != "none" && !is_link) return true;
  return !origin.empty() && origin != StrCat("http://", reader.Field("Host"));
}

bool IsJson(std::string_view content_type) {
  constexpr absl::string_view kJson = "application/json";
  const std::string_view type = content_type.substr(0, content_type.find_first_of("; "));
  return absl::EqualsIgnoreCase(ToAbsl(type), kJson);
}

}  // namespace

ServerState::ServerState(HttpServerOptions server_options, HttpRouter server_router,
                         std::vector<HttpHandler> server_handlers,
                         std::unique_ptr<asio::ssl::context> server_tls)
    : options(std::move(server_options)),
      io(1),
      gate(std::make_shared<IoGate>(&io)),
      router_(std::move(server_router)),
      handlers_(std::move(server_handlers)),
      tls_(std::move(server_tls)),
      acceptor_(io),
      pause_(io),
      stop_deadline_(io) {}

absl::Status ServerState::Listen() {
  MUSTER_ASSIGN_OR_RETURN(const Listener listener, ListenOn(options.address, options.port));
  boost::system::error_code error;
  acceptor_.assign(listener.is_v6 ? tcp::v6() : tcp::v4(), listener.descriptor, error);
  if (error) {
    close(listener.descriptor);
    return absl::InternalError(StrCat("listen on ", options.address, ": ", error.message()));
  }
  port = listener.port;
  if (options.browsers) browsers.emplace(*options.token, port, options.tls.has_value());
  WaitForConnections();
  return absl::OkStatus();
}

void ServerState::Run() { io.run(); }

void ServerState::BeginStop() {
  stopping_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  std::vector<std::shared_ptr<HttpConnection>> connections;
  for (const auto& [pointer, open] : open_) connections.push_back(open.connection);
  for (const auto& connection : connections) connection->Stop();
  stop_deadline_.expires_after(kStopGrace);
  stop_deadline_.async_wait([this](const boost::system::error_code& error) {
    if (!error) io.stop();
  });
  if (open_.empty()) stop_deadline_.cancel();
}

void ServerState::WaitForConnections() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](const boost::system::error_code& error) {
    if (!error && !stopping_) AcceptWaiting();
  });
}

void ServerState::AcceptWaiting() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    std::string peer;
    int error = 0;
    const int fd = AcceptOne(acceptor_.native_handle(), &peer, &error);
    if (fd >= 0) {
      AddConnection(fd, std::move(peer));
    } else if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      if (!EvictOldest()) return AcceptLater();
    } else if (error == EAGAIN || error == EWOULDBLOCK) {
      break;
    }  // else the peer left before it was accepted
  }
  WaitForConnections();
}

void ServerState::AcceptLater() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopping_) WaitForConnections();
  });
}

bool ServerState::EvictOldest() {
  if (strangers_.empty()) return false;
  ++evicted;
  strangers_.front()->Close();
  return true;
}

void ServerState::AddConnection(int descriptor, std::string peer) {
  tcp::socket socket(io);
  boost::system::error_code error;
  socket.assign(peer.front() == '[' ? tcp::v6() : tcp::v4(), descriptor, error);
  if (error) {
    close(descriptor);
    return;
  }
  ++accepted;
  if (strangers_.size() >= options.limits.strangers) EvictOldest();
  std::unique_ptr<HttpStream> stream = tls_ == nullptr ? MakePlainStream(std::move(socket))
                                                       : MakeTlsStream(std::move(socket), *tls_);
  auto connection = std::make_shared<HttpConnection>(std::move(stream), this, std::move(peer));
  const auto place = strangers_.insert(strangers_.end(), connection.get());
  open_[connection.get()] = {.connection = connection, .place = place};
  open_strangers = strangers_.size();
  connection->Start();
}

bool ServerState::Admit(HttpConnection* connection) {
  Open& open = open_.at(connection);
  if (open_.size() - strangers_.size() >= options.limits.connections) return false;
  strangers_.erase(open.place);
  open.is_stranger = false;
  open_strangers = strangers_.size();
  open_others = open_.size() - strangers_.size();
  return true;
}

void ServerState::Forget(HttpConnection* connection) {
  const auto found = open_.find(connection);
  if (found == open_.end()) return;
  if (found->second.is_stranger) strangers_.erase(found->second.place);
  open_.erase(found);
  open_strangers = strangers_.size();
  open_others = open_.size() - strangers_.size();
  if (stopping_ && open_.empty()) stop_deadline_.cancel();
}

HttpResponse ServerState::WrongToken() {
  ++wrong_tokens;
  const auto now = std::chrono::steady_clock::now();
  if (now - window_ >= std::chrono::seconds(1)) {
    window_ = now;
    wrong_in_window_ = 0;
  }
  if (++wrong_in_window_ > options.limits.wrong_tokens_per_second) {
    return ErrorResponse(absl::ResourceExhaustedError("too many requests without the token"));
  }
  HttpResponse response = ErrorResponse(
      absl::UnauthenticatedError("this server wants its job's token: Authorization: Bearer TOKEN"));
  response.fields["WWW-Authenticate"] = "Bearer";
  return response;
}

// Finds whose request it is, and refuses a request for which there is no route.
RequestPlan ServerState::JudgeSender(const HttpRequestReader& reader) {
  RequestPlan plan;
  if (options.open) {  // all are strangers, and stay so
    if (reader.has_body()) {
      plan.refusal = ErrorResponse(absl::InvalidArgumentError("send no body to this server"), 413);
    }
    return plan;
  }
  plan.is_stranger = false;
  if (options.token) {
    const std::string_view field = reader.Field("Authorization");
    constexpr size_t kScheme = sizeof("Bearer ") - 1;
    const bool bearer = absl::StartsWithIgnoreCase(ToAbsl(field), "Bearer ");
    if (bearer && options.token->Matches(field.substr(kScheme))) return plan;
    if (browsers && field.empty()) {
      if (browsers->MayRead(reader)) return plan;
      plan.refusal = browsers->Redirect(reader);
      if (plan.refusal) return plan;
    }
    plan.refusal = WrongToken();
  } else if (!NamesLoopback(reader.Field("Host")) ||
             (options.forward ? IsOfAnotherPage(reader) : !reader.Field("Origin").empty())) {
    // Without a token, a web page in a browser of this machine is the stranger to keep out: it
    // reaches loopback, but under another name (DNS rebinding) or with an Origin.
    plan.refusal = ErrorResponse(absl::PermissionDeniedError(
        "this server has no token and answers only programs of its own machine that call it by "
        "127.0.0.1, ::1 or localhost, and no web pages"));
  }
  plan.is_stranger = plan.refusal.has_value();
  return plan;
}

RequestPlan ServerState::Judge(const HttpRequestReader& reader) {
  RequestPlan plan = JudgeSender(reader);
  if (plan.refusal) return plan;
  absl::StatusOr<HttpTarget> target = ParseTarget(reader.target());
  if (!target.ok()) {
    plan.refusal = ErrorResponse(target.status());
    return plan;
  }
  plan.target = *std::move(target);
  if (options.forward) return plan;
  RouteMatch match = router_.Find(reader.method(), plan.target.segments);
  if (match.route) {
    plan.route = *match.route;
    plan.parameters = std::move(match.parameters);
    if (reader.has_body() && !IsJson(reader.Field("Content-Type"))) {
      plan.refusal = ErrorResponse(
          absl::InvalidArgumentError("send the body as JSON, with Content-Type: application/json"),
          415);
    }
  } else if (match.allowed.empty()) {
    plan.refusal =
        ErrorResponse(absl::NotFoundError(StrCat("there is nothing at ", plan.target.path)));
  } else {
    plan.refusal = ErrorResponse(
        absl::UnimplementedError(StrCat(plan.target.path, " takes ", match.allowed)), 405);
    plan.refusal->fields["Allow"] = match.allowed;
  }
  return plan;
}

std::weak_ptr<ReplyState> ServerState::Handle(HttpConnection* connection, RequestPlan plan,
                                              const HttpRequestReader& reader) {
  const auto state = std::make_shared<ReplyState>(gate, connection->weak_from_this(),
                                                  connection->request_number());
  const HttpReply reply(state);
  if (options.forward) {
    ++requests;
    options.forward({.method = std::string(reader.method()),
                     .target = std::string(reader.target()),
                     .fields = reader.fields(),
                     .body = reader.body()},
                    reply);
    return state;
  }
  HttpRequest request = {.method = std::string(reader.method()),
                         .path = std::move(plan.target.path),
                         .parameters = std::move(plan.parameters),
                         .query = std::move(plan.target.query),
                         .peer = connection->peer()};
  if (!reader.body().empty()) {
    absl::StatusOr<Json> body = ParseJson(reader.body(), "request body");
    if (!body.ok()) {
      reply.SendError(body.status());
      return state;
    }
    request.body = *std::move(body);
  }
  ++requests;
  RunHandler(handlers_[plan.route], request, reply);
  return state;
}

void ServerState::RunHandler(const HttpHandler& handler, const HttpRequest& request,
                             const HttpReply& reply) {
  try {
    handler(request, reply);
  } catch (const Json::exception& error) {
    reply.SendError(absl::InvalidArgumentError(StrCat("request body: ", error.what())));
  } catch (const std::exception& error) {
    reply.SendError(absl::InternalError(StrCat("the server's handler failed: ", error.what())));
  }
}

}  // namespace muster::net::internal
