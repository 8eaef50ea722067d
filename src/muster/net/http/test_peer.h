// For tests: a server with clients, and a raw peer that can send malformed bytes.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/net/http/client.h"
#include "muster/net/http/server.h"
#include "muster/net/listen.h"

namespace muster::net {

constexpr double kTestSeconds = 60;  // more than anything here takes

inline std::unique_ptr<HttpServer> StartServer(std::vector<HttpRoute> routes,
                                               HttpServerOptions options = {}) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(std::move(options), std::move(routes));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

inline std::unique_ptr<HttpClient> MakeClient(const HttpServer& server,
                                              HttpClientOptions options = {}) {
  if (options.url.empty()) options.url = server.url();
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

// Waits until another thread makes the condition true; false if it does not within kTestSeconds.
inline bool WaitFor(const std::function<bool()>& condition) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(kTestSeconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

// A TCP connection to a port of this machine, or one that was accepted. Reads end at kTestSeconds.
class RawPeer {
 public:
  static RawPeer Accepted(int fd) {
    fcntl(fd, F_SETFL, 0);  // sends wait
    return {fd, true};
  }
  explicit RawPeer(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  RawPeer(RawPeer&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  RawPeer& operator=(RawPeer&&) = delete;
  ~RawPeer() {
    if (fd_ >= 0) close(fd_);
  }

  bool connected() const { return connected_; }

  // Returns false if the server closed the connection.
  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  bool ReadableWithin(int milliseconds) const {
    pollfd waiting = {.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&waiting, 1, milliseconds) > 0;
  }

  bool ClosedWithin(int milliseconds) const {
    if (!ReadableWithin(milliseconds)) return false;
    char byte;
    return recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
  }

  // Reads until `end` has arrived, the server closes, or the time is over.
  std::string ReadUntil(std::string_view end) const {
    std::string text;
    char buffer[4096];
    pollfd waiting = {.fd = fd_, .events = POLLIN, .revents = 0};
    while ((end.empty() || text.find(end) == std::string::npos) &&
           poll(&waiting, 1, static_cast<int>(kTestSeconds * 1000)) > 0) {
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }
  std::string ReadToEnd() const { return ReadUntil(""); }
  // Fewer bytes if the other side closes or the time is over.
  std::string ReadBytes(size_t bytes) const {
    std::string text(bytes, '\0');
    size_t had = 0;
    while (had < bytes && ReadableWithin(static_cast<int>(kTestSeconds * 1000))) {
      const ssize_t got = recv(fd_, text.data() + had, bytes - had, 0);
      if (got <= 0) break;
      had += static_cast<size_t>(got);
    }
    text.resize(had);
    return text;
  }

 private:
  RawPeer(int fd, bool connected) : fd_(fd), connected_(connected) {}

  int fd_;
  bool connected_ = false;
};

// A server that runs a test's scripts: one per connection, in this order, each on the server's
// thread. A connection ends with its script.
class ScriptedServer {
 public:
  using Script = std::function<void(const RawPeer& peer)>;

  explicit ScriptedServer(std::vector<Script> scripts, const std::string& address = "127.0.0.1")
      : listener_(internal::ListenOn(address, 0).value()),
        authority_(internal::HostPort(address, listener_.port)),
        thread_([this, scripts = std::move(scripts)] { Serve(scripts); }) {}
  ~ScriptedServer() {
    shutdown(listener_.descriptor, SHUT_RDWR);  // accept nobody more
    thread_.join();
    close(listener_.descriptor);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  // Reads a request's header and sends `answer`.
  static Script Answer(std::string answer) {
    return [answer = std::move(answer)](const RawPeer& peer) {
      if (!peer.ReadUntil("\r\n\r\n").empty()) peer.Send(answer);
    };
  }

  uint16_t port() const { return listener_.port; }
  std::string authority() const { return authority_; }  // "127.0.0.1:40312"
  std::string url() const { return StrCat("http://", authority_); }

 private:
  void Serve(const std::vector<Script>& scripts) const {
    for (const Script& script : scripts) {
      pollfd waiting = {.fd = listener_.descriptor, .events = POLLIN, .revents = 0};
      poll(&waiting, 1, static_cast<int>(kTestSeconds * 1000));
      std::string name;
      int error = 0;
      const int fd = internal::AcceptOne(listener_.descriptor, &name, &error);
      if (fd < 0) return;
      script(RawPeer::Accepted(fd));
    }
  }

  const internal::Listener listener_;
  const std::string authority_;
  std::thread thread_;
};

}  // namespace muster::net
