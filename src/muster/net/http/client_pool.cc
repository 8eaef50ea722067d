#include "muster/net/http/client_pool.h"

#include <algorithm>
#include <utility>

namespace muster::net::internal {
namespace {

std::string GetOrigin(const HttpUrl& url) {
  return StrCat(url.is_tls ? "https://" : "http://", url.authority);
}

bool IsIdle(PooledConnection& one) { return !one.in_use && one.connection.IsOpen(); }

}  // namespace

ClientPool::ClientPool(const HttpPoolOptions& options,
                       std::unique_ptr<boost::asio::ssl::context> tls)
    : options_(options), idle_time_(ToDuration(options.idle_seconds)), tls_(std::move(tls)) {}

ClientPool::~ClientPool() = default;

absl::StatusOr<ClientPool::Lease> ClientPool::Take(const HttpUrl& url, SteadyTime deadline,
                                                   const std::atomic<bool>& cancelled) {
  const std::string origin = GetOrigin(url);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (cancelled) return absl::CancelledError("cancelled");
    const SteadyTime now = std::chrono::steady_clock::now();
    CloseOld(now);
    if (PooledConnection* const found = FindFree(origin); found != nullptr) {
      if (found->connection.IsOpen()) ++reused_;
      found->in_use = true;
      found->origin = origin;
      return Lease(this, found);
    }
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          StrCat("all ", options_.max_connections, " connections of the pool are in use"));
    }
    freed_.wait_until(lock, std::min(deadline, now + std::chrono::hours(1)));
  }
}

// Returns an open connection to the server, a closed or a new one, or one that was open to another
// server; null if all are in use.
PooledConnection* ClientPool::FindFree(const std::string& origin) {
  if (PooledConnection* const open = FindOpen(origin); open != nullptr) return open;
  if (PooledConnection* const closed = FindClosed(); closed != nullptr) return closed;
  if (connections_.size() < options_.max_connections) {
    return connections_.emplace_back(std::make_unique<PooledConnection>()).get();
  }
  PooledConnection* const other = LongestIdle();
  if (other != nullptr) other->connection.Close();
  return other;
}

// Returns the connection that was used last. One that its server has closed is closed here, too;
// only the one that would be returned is looked at, which takes a call of the system.
PooledConnection* ClientPool::FindOpen(const std::string& origin) {
  for (;;) {
    PooledConnection* found = nullptr;
    for (const auto& one : connections_) {
      if (!IsIdle(*one) || one->origin != origin) continue;
      if (found == nullptr || one->idle_since > found->idle_since) found = one.get();
    }
    if (found == nullptr || found->connection.IsUsable()) return found;
  }
}

PooledConnection* ClientPool::FindClosed() {
  for (const auto& one : connections_) {
    if (!one->in_use && !one->connection.IsOpen()) return one.get();
  }
  return nullptr;
}

PooledConnection* ClientPool::LongestIdle() {
  PooledConnection* found = nullptr;
  for (const auto& one : connections_) {
    if (!IsIdle(*one)) continue;
    if (found == nullptr || one->idle_since < found->idle_since) found = one.get();
  }
  return found;
}

void ClientPool::CloseOld(SteadyTime now) {
  for (const auto& one : connections_) {
    if (IsIdle(*one) && now - one->idle_since > idle_time_) one->connection.Close();
  }
}

void ClientPool::GiveBack(PooledConnection* connection) {
  const std::lock_guard lock(mutex_);
  const SteadyTime now = std::chrono::steady_clock::now();
  connection->in_use = false;
  connection->idle_since = now;
  CloseOld(now);
  if (CountIdle() > options_.max_idle) LongestIdle()->connection.Close();
  freed_.notify_all();
}

size_t ClientPool::CountIdle() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const auto& one) { return IsIdle(*one); }));
}

void ClientPool::Wake() {
  const std::lock_guard lock(mutex_);  // not between a Take()'s look and its wait
  freed_.notify_all();
}

void ClientPool::CloseIdle(size_t keep) {
  const std::lock_guard lock(mutex_);
  while (CountIdle() > keep) LongestIdle()->connection.Close();
}

HttpPoolCounters ClientPool::counters() const {
  const std::lock_guard lock(mutex_);
  HttpPoolCounters counters = {.opened = opened_, .reused = reused_};
  for (const auto& one : connections_) {
    counters.in_use += one->in_use ? 1 : 0;
    counters.idle += IsIdle(*one) ? 1 : 0;
  }
  return counters;
}

}  // namespace muster::net::internal
