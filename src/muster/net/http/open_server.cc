#include "muster/net/http/open_server.h"

#include <chrono>
#include <optional>
#include <utility>

namespace muster::net {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFresh = std::chrono::seconds(1);
constexpr size_t kHeaderBytes = size_t{8} << 10;
constexpr size_t kConnections = 64;
constexpr double kIdleSeconds = 20;  // a Prometheus asks each 15 s

// A response that is kept for a moment. Only the server's one thread uses it.
class Cached {
 public:
  explicit Cached(std::function<HttpResponse()> make) : make_(std::move(make)) {}
  const HttpResponse& Get() {
    const auto now = Clock::now();
    if (!response_ || now - made_at_ >= kFresh) {
      response_ = make_();
      made_at_ = now;
    }
    return *response_;
  }

 private:
  std::function<HttpResponse()> make_;
  std::optional<HttpResponse> response_;
  Clock::time_point made_at_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OpenServer>> OpenServer::Start(const std::string& address,
                                                              uint16_t port,
                                                              std::vector<OpenRoute> routes) {
  HttpServerOptions options;
  options.address = address;
  options.port = port;
  options.open = true;
  options.limits.header_bytes = kHeaderBytes;
  options.limits.strangers = kConnections;
  options.limits.idle_seconds = kIdleSeconds;
  std::vector<HttpRoute> made;
  for (OpenRoute& route : routes) {
    const auto cached = std::make_shared<Cached>(std::move(route.answer));
    made.push_back(
        {"GET", std::move(route.path),
         [cached](const HttpRequest&, const HttpReply& reply) { reply.Send(cached->Get()); }});
  }
  MUSTER_ASSIGN_OR_RETURN(auto server, HttpServer::Start(std::move(options), std::move(made)));
  return std::unique_ptr<OpenServer>(new OpenServer(std::move(server)));
}

}  // namespace muster::net
