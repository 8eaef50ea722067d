// What an HttpServer owns: the io thread, the listener, the connections. Included by .cc files of
// this layer only. Everything is used on the io thread unless noted otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "muster/net/http/browser_access.h"
#include "muster/net/http/connection.h"
#include "muster/net/http/reply_state.h"
#include "muster/net/http/router.h"
#include "muster/net/http/server.h"

namespace muster::net::internal {

struct ServerState : public ConnectionHost {
 public:
  ServerState(HttpServerOptions server_options, HttpRouter server_router,
              std::vector<HttpHandler> server_handlers,
              std::unique_ptr<boost::asio::ssl::context> server_tls);

  absl::Status Listen();  // before the thread starts
  void Run();             // the io thread's body
  void BeginStop();

  const HttpLimits& limits() const override { return options.limits; }
  bool stopping() const override { return stopping_; }
  RequestPlan Judge(const HttpRequestReader& reader) override;
  bool Admit(HttpConnection* connection) override;
  std::weak_ptr<ReplyState> Handle(HttpConnection* connection, RequestPlan plan,
                                   const HttpRequestReader& reader) override;
  void CountTimeOut() override { ++timed_out; }
  void Forget(HttpConnection* connection) override;

  const HttpServerOptions options;
  uint16_t port = 0;
  std::optional<BrowserAccess> browsers;  // once it listens
  std::atomic<uint64_t> accepted = 0, requests = 0, wrong_tokens = 0, evicted = 0, timed_out = 0,
                        open_strangers = 0, open_others = 0;
  boost::asio::io_context io;  // before all objects that use it
  std::shared_ptr<IoGate> gate;
  std::thread thread;

 private:
  struct Open {
    std::shared_ptr<HttpConnection> connection = {};
    std::list<HttpConnection*>::iterator place = {};  // in strangers_, until it is admitted
    bool is_stranger = true;
  };

  void WaitForConnections();
  void AcceptWaiting();
  void AcceptLater();
  bool EvictOldest();
  void AddConnection(int descriptor, std::string peer);
  RequestPlan JudgeSender(const HttpRequestReader& reader);
  HttpResponse WrongToken();
  void RunHandler(const HttpHandler& handler, const HttpRequest& request, const HttpReply& reply);

  const HttpRouter router_;
  const std::vector<HttpHandler> handlers_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;  // before accepting again after descriptors ran out
  boost::asio::steady_timer stop_deadline_;
  std::unordered_map<HttpConnection*, Open> open_;
  std::list<HttpConnection*> strangers_;  // oldest first
  bool stopping_ = false;
  std::chrono::steady_clock::time_point window_ = {};  // one second, for wrong tokens
  int wrong_in_window_ = 0;
};

}  // namespace muster::net::internal
