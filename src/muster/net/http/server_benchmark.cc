// What a heartbeat costs, client and server together: a kept connection, a token, small JSON.
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "muster/net/http/client.h"
#include "muster/net/http/server.h"
#include "muster/net/tls/certs.h"

namespace muster::net {
namespace {

void Heartbeat(benchmark::State& state, HttpServerOptions options,
               HttpClientOptions client_options) {
  options.token = Token::Make().value();
  client_options.token = options.token;
  std::vector<HttpRoute> routes = {
      {"POST", "/v1/tasks/{task}/heartbeat",
       [](const HttpRequest& request, const HttpReply& reply) {
         reply.SendJson({{"epoch", request.body.at("epoch")}, {"action", "none"}});
       }}};
  const auto server = HttpServer::Start(std::move(options), std::move(routes)).value();
  client_options.url = server->url();
  const auto client = HttpClient::Create(std::move(client_options)).value();
  const Json beat = {{"epoch", 1}, {"state", "running"}, {"cpu_seconds", 12.5}, {"pss", 123456}};
  for (auto _ : state) {
    if (!client->Post("/v1/tasks/worker-0/heartbeat", beat, 10).ok()) {
      state.SkipWithError("no answer");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

void HeartbeatPlain(benchmark::State& state) { Heartbeat(state, {}, {}); }

void HeartbeatTls(benchmark::State& state) {
  const Credentials authority = MakeAuthority("job", 10).value();
  const Credentials server =
      MakeCertificate(authority, {.name = "job", .hosts = {"127.0.0.1"}}).value();
  HttpServerOptions options;
  options.tls = ServerTls{.certificate = server.certificate, .key = server.key};
  Heartbeat(state, options, {.tls = ClientTls{.authority = authority.certificate}});
}

BENCHMARK(HeartbeatPlain)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(HeartbeatTls)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace muster::net
