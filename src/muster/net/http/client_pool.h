// The connections of an HttpPool. Included by .cc files of this layer only: Asio takes seconds to
// compile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <boost/asio/ssl/context.hpp>

#include "muster/net/http/client_connection.h"
#include "muster/net/http/pool.h"

namespace muster::net::internal {

// A connection with the loop that runs it. It is kept until the pool ends, also while closed: its
// loop may still wait for the system's resolver.
struct PooledConnection {
  ClientLoop loop;
  HttpClientConnection connection{loop};
  std::string origin = {};  // of the open connection: "https://host:443"
  bool in_use = false;
  SteadyTime idle_since = {};
};

// Any thread.
class ClientPool {
 public:
  // The right to use a connection; given back when destroyed. Must not outlive the pool.
  class Lease {
   public:
    Lease(ClientPool* pool, PooledConnection* connection) : pool_(pool), connection_(connection) {}
    Lease(Lease&& other) noexcept
        : pool_(other.pool_), connection_(std::exchange(other.connection_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_ != nullptr) pool_->GiveBack(connection_);
    }
    ClientLoop& loop() const { return connection_->loop; }
    HttpClientConnection& connection() const { return connection_->connection; }

   private:
    ClientPool* const pool_;
    PooledConnection* connection_;
  };

  ClientPool(const HttpPoolOptions& options, std::unique_ptr<boost::asio::ssl::context> tls);
  ~ClientPool();

  // A connection to the URL's host: an open one, or one to open. Waits while all are in use:
  // DEADLINE_EXCEEDED, or CANCELLED once `cancelled` is true and Wake() was called. Asio throws a
  // std::exception if descriptors run out.
  absl::StatusOr<Lease> Take(const HttpUrl& url, SteadyTime deadline,
                             const std::atomic<bool>& cancelled);
  // Makes the waiting Take() look at `cancelled`.
  void Wake();

  boost::asio::ssl::context* tls() const { return tls_.get(); }  // null without TLS
  void CountOpened() { ++opened_; }
  void CloseIdle(size_t keep);
  HttpPoolCounters counters() const;

 private:
  PooledConnection* FindFree(const std::string& origin);
  PooledConnection* FindOpen(const std::string& origin);
  PooledConnection* FindClosed();
  PooledConnection* LongestIdle();
  size_t CountIdle() const;
  void CloseOld(SteadyTime now);
  void GiveBack(PooledConnection* connection);

  const HttpPoolOptions options_;
  const std::chrono::nanoseconds idle_time_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;
  std::atomic<uint64_t> opened_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable freed_;
  uint64_t reused_ = 0;  // guarded by mutex_, as all below
  std::vector<std::unique_ptr<PooledConnection>> connections_;
};

}  // namespace muster::net::internal
