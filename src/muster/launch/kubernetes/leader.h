// Leader: leader election by a Lease, as Kubernetes' own controllers do it
// (coordination.k8s.io/v1).
//
// Holding the lease spares work, it does not make anything safe: two operators that both believe to
// lead decide once, since a status is written with the version that was read.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "muster/base/clock.h"
#include "muster/launch/kubernetes/api/kube_client.h"

namespace muster::launch::kubernetes {

struct LeaderOptions {
  std::string name_space = {};
  std::string name = "muster-operator";
  std::string identity = {};  // of this process among all others, at all times
  // Others wait so long after the last renewal that they saw. The leader renews it each 2/15 of
  // that, and gives up after 2/3 of it without a renewal.
  double lease_seconds = 15;

  double renew_seconds() const { return lease_seconds * 2 / 3; }
  double retry_seconds() const { return lease_seconds * 2 / 15; }
};

// What one process has seen of a Lease. The holder's clock is another one: the Lease has expired
// when it did not change for its length, by this process's own clock.
class LeaseSight {
 public:
  // `now` is in monotonic seconds. Also true of a Lease without a holder.
  bool IsExpired(const Json& lease, double now);

 private:
  std::string seen_ = {};  // the holder and its renewal, as they were last seen...
  double seen_at_ = 0;     // ...since when
};

class Leader {
 public:
  Leader(KubeClient& client, const Clock& clock, LeaderOptions options)
      : client_(client), clock_(clock), options_(std::move(options)) {}

  // Takes the lease and renews it until the client is cancelled: OK. When the lease is lost, it is
  // tried for again. `began` is called once, when the lease is won for the first time. `say` is
  // called with a line for people when this process begins to lead, ceases to lead, or waits for
  // another one. PERMISSION_DENIED: this process may not use the lease.
  absl::Status Run(const std::function<void()>& began,
                   const std::function<void(const std::string& line)>& say);
  // Gives the lease back, by a client that is not cancelled, so that another process need not wait
  // for its end.
  void Release(KubeClient& client);
  // Whether the lease is this process's and was renewed in time. Any thread.
  bool leads() const;

 private:
  // One attempt to take or renew the lease.
  absl::StatusOr<bool> TryOnce();
  std::string Describe() const {
    return StrCat("the lease ", options_.name_space, "/", options_.name);
  }
  Json MakeLease(const Json& found) const;
  double Now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }

  KubeClient& client_;
  const Clock& clock_;
  const LeaderOptions options_;
  std::atomic<double> held_until_ = 0;  // monotonic seconds
  std::string holder_ = {};             // as it was last seen
  LeaseSight sight_ = {};
};

}  // namespace muster::launch::kubernetes
