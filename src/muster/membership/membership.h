// Membership: a task's side of the membership protocol. It joins views, learns when they break, and
// sends heartbeats to the host.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "muster/base/status.h"
#include "muster/membership/view.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/tls.h"

namespace muster::membership {

struct MembershipOptions {
  std::string job = {};
  MemberId id = {};
  std::string address = {};  // where peers reach this member
  std::string agreement = {};
  net::transport::Address host = {};
  net::transport::Protection protection = {};
  double lease_seconds = 10;        // a host that is silent for longer is lost
  double rendezvous_seconds = 300;  // a host that is away for longer is lost permanently
  // Checked while the member waits: true ends the wait with CANCELLED. Null: nothing ends it.
  const std::atomic<bool>* stop = nullptr;
  // If true as well as `stop`: only this member must end. The host is informed, and all calls of
  // the member to its peers end with CANCELLED. Null: a stop is meant for all tasks.
  const std::atomic<bool>* leaving = nullptr;
  // For people: which tasks the next view waits for, and that what the host sent was damaged.
  // Called on the member's own thread; may be empty.
  std::function<void(const std::string& text)> note = {};
  // Asked after each vain attempt to reach the host: true ends the wait with CANCELLED, since
  // training is over. Called on the member's own thread; may be empty.
  std::function<bool()> has_ended = {};
};

// Thread-safe.
class Membership {
 public:
  // Connects in the background.
  static absl::StatusOr<std::unique_ptr<Membership>> Start(MembershipOptions options,
                                                           const net::Token& key);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Waits for a view that contains this member. `failure` says how the last generation ended as
  // this member saw it; nullopt if the host reported its end. CANCELLED: training is over, or this
  // task was stopped; FAILED_PRECONDITION: this task cannot be a member; UNAUTHENTICATED: its key
  // is not the host's; DEADLINE_EXCEEDED: the host was away for rendezvous_seconds.
  absl::StatusOr<View> Join(const StateId& state, const std::optional<Broken>& failure);
  // The interrupt is set to ABORTED, with the reason, when the view that Join returned breaks or
  // its host is lost; to CANCELLED when this member is leaving or training is over; else to the
  // error with which the host refused this member. If a formed generation breaks for a newcomer,
  // that is only planned, and set when nothing has moved for a while.
  std::shared_ptr<net::transport::Interrupt> interrupt();
  // Says that this member has reached the others of its view.
  void SetFormed();
  // Waits until the chief has ended training. ABORTED: the view broke before that; CANCELLED: this
  // member was stopped.
  absl::Status WaitForEnd();

  // For an evaluator, which is in no view, instead of Join: waits up to `seconds` for the last
  // checkpoint and returns whether it is written. CANCELLED: training, or this member, was stopped
  // before the end; other errors are those of Join.
  absl::StatusOr<bool> AwaitTrained(double seconds);
  // Leaves the training permanently and waits until the host knows. Errors are those of Join; the
  // host may then not know that this member has left.
  absl::Status Leave();

 private:
  Membership(MembershipOptions options, const net::Token& key,
             std::unique_ptr<net::transport::Interrupt> stop);
  void Run(const std::stop_token& stop);
  std::chrono::milliseconds GetBeat() const;  // with mutex_ held
  absl::Status Connect();
  absl::Status Converse();
  absl::Status Handle(const Message& message);
  absl::StatusOr<View> Apply(const ViewChange& change);  // with mutex_ held
  void OnHostLost(const absl::Status& why);
  void OnBroken(const Broken& broken);  // with mutex_ held
  void EndPlanned();                    // with mutex_ held
  void Send(Message message);           // with mutex_ held
  bool ended() const { return over_ || !refused_.ok() || stopped(); }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  bool leaving() const {
    return options_.leaving != nullptr && options_.leaving->load() && stopped();
  }
  // Waits until holds() or ended(), with mutex_ held by `lock`.
  void WaitUntil(std::unique_lock<std::mutex>& lock, const std::function<bool()>& holds);
  // The error with which a waiting call ends if ended(); with mutex_ held.
  absl::Status End() const;

  const MembershipOptions options_;
  const net::Token key_;
  const std::unique_ptr<net::transport::Interrupt> stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Message> pending_;
  std::optional<membership::Join> join_;  // the request to join, until a view arrives
  bool join_sent_ = false;                // join_ was sent on this connection
  bool watches_ = false;                  // an evaluator, which is in no view: join_ stays set
  bool trained_ = false, leaves_ = false;
  std::optional<View> view_;
  std::optional<View> known_view_;  // the last that the host has sent, also if it is over
  int64_t last_generation_ = 0;
  bool over_ = false;
  absl::Status refused_;
  std::shared_ptr<net::transport::Interrupt> interrupt_;
  bool formed_ = false;                          // the generation of interrupt_
  int64_t planned_nanos_ = 0, moved_nanos_ = 0;  // when interrupt_ was planned, and the last move
  std::chrono::milliseconds patience_ = {};      // with a planned interrupt, while nothing moves
  // Used by thread_ alone.
  std::unique_ptr<net::transport::Channel> channel_;
  int64_t lost_nanos_ = 0;
  bool noted_loss_ = false;
  std::jthread thread_;
};

}  // namespace muster::membership
