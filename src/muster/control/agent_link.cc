#include "muster/control/agent_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::control {
namespace {

using formats::PrintJson;

constexpr double kUrgentSeconds = 2;
// A coordinator answers once it has started all agents of a job.
constexpr std::chrono::milliseconds kFirstRetryPause{2}, kLongestRetryPause{100};
constexpr char kPath[] = "/v1/agent";

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

AgentLink::AgentLink(std::unique_ptr<net::HttpClient> poll_client,
                     std::unique_ptr<net::HttpClient> urgent_client, AgentReport report,
                     double lease_seconds, Finder find)
    : news_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      report_(std::move(report)),
      lease_seconds_(lease_seconds),
      heard_at_(Now()),
      find_(std::move(find)),
      poll_client_{std::move(poll_client), ""},
      urgent_client_{std::move(urgent_client), ""} {}

AgentLink::~AgentLink() {
  loop_.request_stop();
  const std::lock_guard lock(mutex_);
  ending_ = true;
  poll_client_.client->Cancel();
}

// The coordinator is silent: it may be elsewhere by now.
void AgentLink::Find(Client& client) {
  if (!find_) return;
  std::shared_ptr<net::HttpClient> found = find_(client.url);
  if (found == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (!ending_) client.client = std::move(found);
}

void AgentLink::Tell(const AgentReport& report, bool urgent) {
  {
    const std::lock_guard lock(mutex_);
    report_ = report;
  }
  if (urgent) Exchange(urgent_client_, /*poll=*/false, kUrgentSeconds);
  if (!loop_.joinable()) {
    loop_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
  }
}

AgentOrders AgentLink::orders() {
  const std::lock_guard lock(mutex_);
  return orders_;
}

double AgentLink::silent_seconds() {
  const std::lock_guard lock(mutex_);
  return Now() - heard_at_;
}

double AgentLink::lease_seconds() {
  const std::lock_guard lock(mutex_);
  return lease_seconds_;
}

std::string AgentLink::last_error() {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void AgentLink::ClearNews() const {
  uint64_t count = 0;
  (void)!read(news_fd_.get(), &count, sizeof count);
}

// One report and its answer. `poll`: the answer may come late, when there are other orders than
// those already here.
bool AgentLink::Exchange(Client& client, bool poll, double timeout_seconds) {
  AgentReport report;
  std::shared_ptr<net::HttpClient> http;
  const double sent_at = Now();
  {
    const std::lock_guard lock(mutex_);
    http = client.client;
    report = report_;
    report.sequence = ++sequence_;
    report.seen = poll ? orders_.version : 0;
  }
  // Texts that are no UTF-8 are made so on the way.
  const auto answer =
      http->Post(kPath, net::Json::parse(PrintJson(ToJson(report))), timeout_seconds);
  auto orders = answer.ok() ? OrdersFromJson(Json(*answer)) : answer.status();
  if (!orders.ok()) {
    {
      const std::lock_guard lock(mutex_);
      last_error_ = ToStd(orders.status().message());
    }
    Find(client);
    return false;
  }
  const std::lock_guard lock(mutex_);
  last_error_.clear();
  // The coordinator counts from when it answered, which was no earlier.
  heard_at_ = std::max(heard_at_, std::min(sent_at + orders->held_seconds, Now()));
  lease_seconds_ = orders->lease_seconds;
  // Answers of the two clients may cross.
  if (orders->version <= orders_.version) return true;
  orders_ = *std::move(orders);
  const uint64_t one = 1;
  (void)!write(news_fd_.get(), &one, sizeof one);  // full is readable too
  return true;
}

void AgentLink::Loop(const std::stop_token& stop) {
  auto pause = kFirstRetryPause;
  while (!stop.stop_requested()) {
    if (Exchange(poll_client_, /*poll=*/true, lease_seconds())) {
      pause = kFirstRetryPause;
      continue;
    }
    std::unique_lock lock(mutex_);
    pause_.wait_for(lock, stop, pause, [] { return false; });
    pause = std::min(pause * 2, kLongestRetryPause);
  }
}

}  // namespace muster::control
