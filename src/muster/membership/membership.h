// Membership: a task's side of membership: joins views, hears when they break, shows that it lives.
#pragma once

#include <atomic>
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
  std::string address = {};  // where peers reach it
  std::string agreement = {};
  net::transport::Address host = {};
  net::transport::Protection protection = {};
  double lease_seconds = 10;        // silence of the host for longer: it is lost
  double rendezvous_seconds = 300;  // without a host for longer: it will not come back
  // Asked while it waits: true gives the wait up, as CANCELLED. Null: it waits.
  const std::atomic<bool>* stop = nullptr;
  // For people: for whom the next view waits. Called on a thread of the member's own; may be empty.
  std::function<void(const std::string& text)> note = {};
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

  // Waits for a view with this member in it. `failure`: how the last epoch ended, as this member
  // saw it, unless the host said so. CANCELLED: training is over, or was given up;
  // FAILED_PRECONDITION: it cannot be a member; DEADLINE_EXCEEDED: no host.
  absl::StatusOr<View> Join(const StateId& state, const std::optional<Broken>& failure);
  // Set when the view that Join gave is broken, or its host lost: ABORTED with the reason.
  std::shared_ptr<net::transport::Interrupt> interrupt();
  // Waits until the chief has ended training; ABORTED when the view breaks before.
  absl::Status WaitForEnd();

  // Of an evaluator, who is in no view, instead of Join: waits so long for the last checkpoint.
  // True: it is written. CANCELLED: training was stopped before its end, or this member was; else
  // the errors of Join.
  absl::StatusOr<bool> AwaitTrained(double seconds);
  // For good, and waits until the host knows. Errors as of Join: it never will.
  absl::Status Leave();

 private:
  Membership(MembershipOptions options, const net::Token& key,
             std::unique_ptr<net::transport::Interrupt> stop);
  void Run(const std::stop_token& stop);
  absl::Status Connect();
  absl::Status Converse();
  void Take(const Message& message);
  void Lost(const absl::Status& why);
  void Send(Message message);  // with mutex_ held
  bool ended() const { return over_ || !refused_.ok() || stopped(); }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  // With mutex_ held by `lock`: until what it says, or the end.
  void WaitUntil(std::unique_lock<std::mutex>& lock, const std::function<bool()>& holds);
  // With mutex_ held: how a waiting call ends, OK for over.
  absl::Status End() const;

  const MembershipOptions options_;
  const net::Token key_;
  const std::unique_ptr<net::transport::Interrupt> stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Message> unsaid_;
  std::optional<membership::Join> join_;  // what is asked for, until a view comes
  bool join_said_ = false;                // on this connection
  bool attends_ = false;                  // in no view: `join_` stays
  bool trained_ = false, leaves_ = false;
  std::optional<View> view_;
  int64_t last_epoch_ = 0;
  bool over_ = false;
  absl::Status refused_;
  std::shared_ptr<net::transport::Interrupt> interrupt_;
  // Of the thread alone.
  std::unique_ptr<net::transport::Channel> channel_;
  int64_t lost_nanos_ = 0;
  std::jthread thread_;
};

}  // namespace muster::membership
