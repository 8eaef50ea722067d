// For tests of HttpExchange: exchanges of test servers, and bodies that watch how they are read.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "muster/net/http/exchange.h"
#include "muster/net/http/test_peer.h"

namespace muster::net {

inline std::unique_ptr<HttpExchange> ExchangeWith(const std::string& url,
                                                  HttpExchangeOptions options = {}) {
  options.url = url;
  absl::StatusOr<std::unique_ptr<HttpExchange>> exchange = HttpExchange::Create(std::move(options));
  EXPECT_TRUE(exchange.ok()) << exchange.status();
  return exchange.ok() ? *std::move(exchange) : nullptr;
}

inline HttpCall GetCall(std::string target) {
  return {.method = "GET", .target = std::move(target)};
}

inline absl::StatusOr<HttpAnswer> FetchFrom(HttpExchange& exchange, const HttpCall& call) {
  return exchange.Fetch(call, size_t{1} << 20, {.total_seconds = kTestSeconds});
}

inline std::string SizedAnswer(std::string_view body) {
  return StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

// A body whose bytes are made by a function; it counts the bytes that were read.
class MadeBody : public BodySource {
 public:
  using Make = std::function<absl::StatusOr<size_t>(char* buffer, size_t size)>;

  MadeBody(std::optional<uint64_t> size, Make make, bool can_restart = true)
      : size_(size), make_(std::move(make)), can_restart_(can_restart) {}

  // A body of this many letters.
  static std::unique_ptr<MadeBody> Letters(size_t size) {
    auto left = std::make_shared<size_t>(size);
    return std::make_unique<MadeBody>(size, [left](char* buffer, size_t room) {
      const size_t taken = std::min(room, *left);
      std::memset(buffer, 'a', taken);
      *left -= taken;
      return taken;
    });
  }

  std::optional<uint64_t> size() const override { return size_; }
  bool Restart() override { return restarts_++ == 0 || can_restart_; }
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    absl::StatusOr<size_t> made = make_(buffer, size);
    if (made.ok()) read_ += *made;
    return made;
  }
  size_t read() const { return read_; }  // any thread

 private:
  const std::optional<uint64_t> size_;
  const Make make_;
  const bool can_restart_;
  int restarts_ = 0;
  std::atomic<size_t> read_ = 0;
};

}  // namespace muster::net
