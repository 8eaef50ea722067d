// Roster: who is in. The host's side of membership as a pure state machine: events and a clock in,
// messages out. The same code runs in a job and in the simulation (simulation_test.cc).
//
// A view forms when every expected task has joined; with fewer workers than wanted, but enough,
// when `settle_seconds` have passed without those of the last view (of the first: without all), or
// when others join a view that has done without them. It breaks when a member's connection closes,
// when it is silent for a lease, when another incarnation of it joins, or when a member reports a
// peer that it cannot reach. Members of a broken epoch must join again, saying which step they
// have. When peers that live cannot reach each other time after time, without a step in between, it
// ends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/membership/view.h"

namespace muster::membership {

struct RosterSpec {
  std::vector<job::TaskId> tasks = {};  // expected; of the workers the most there may be
  // What all must have the same, as the first task has it; "": as the first that joins.
  std::string agreement = {};
  int min_replicas = 0;             // fewer do not begin; 0: all of them
  double lease_seconds = 10;        // silence for longer is death
  double settle_seconds = 3;        // how long fewer than all wait for the others
  double rendezvous_seconds = 300;  // then training ends, naming who is missing
  // A host that was started again begins with a higher number than any that the one before can have
  // given: members that were told of an epoch may all be dead.
  int64_t first_epoch = 1;
};

// Chief, master and workers train; parameter servers and evaluators serve.
bool IsReplica(job::TaskType type);

// Times are monotonic seconds. One owner thread.
class Roster {
 public:
  using Connection = uint64_t;
  struct Outgoing {
    Connection to = 0;
    Message message;
    bool close = false;  // behind the message
  };

  explicit Roster(RosterSpec spec)
      : spec_(std::move(spec)), last_epoch_(spec_.first_epoch - 1), agreement_(spec_.agreement) {
    if (!spec_.tasks.empty()) agreed_by_ = spec_.tasks.front();
  }

  std::vector<Outgoing> OnMessage(Connection from, const Message& message, double now);
  // The connection is gone; `cause` says how it looked.
  std::vector<Outgoing> OnClosed(Connection from, std::string_view cause, double now);
  std::vector<Outgoing> OnTick(double now);
  // The chief has written its last checkpoint: evaluators are told, and those that come later. The
  // others are not yet: whoever takes the chief's place may still need them.
  std::vector<Outgoing> OnTrained(double now);
  // Since then: whether every evaluator has left. DEADLINE_EXCEEDED: one has been away for
  // rendezvous_seconds.
  absl::StatusOr<bool> evaluated(double now) const;
  // The chief says that training is over: all are told, and who comes later.
  std::vector<Outgoing> OnEnd(double now);
  // When OnTick has something to do, at the latest.
  double wake_at() const { return wake_at_; }

  // The view in force; none between two.
  const std::optional<View>& view() const { return view_; }
  // Not OK: nobody may train any more (too few came in time).
  const absl::Status& status() const { return status_; }
  bool over() const { return over_; }

 private:
  struct Entry {
    Member member;
    Connection connection = 0;
    double heard_at = 0;
    bool ready = false;  // it has joined for the next view
    bool in_view = false;
  };
  using Entries = std::map<job::TaskId, Entry>;

  void OnJoin(Connection from, const Join& join, double now);
  std::string WhyRefused(const Join& join) const;
  void OnFailure(Connection from, const Broken& failure, double now);
  void OnLeave(Connection from, double now);
  void Drop(Entries::iterator entry, std::string_view cause, bool planned, double now);
  void Break(const MemberId& culprit, std::string_view cause, bool planned, double now);
  void TryForm(double now);
  void NoticeSleep(double now);
  void ExpireSilent(double now);
  void SayWaiting(double now);
  void GiveUp();
  void SeekEvaluators(double now);
  void End(absl::Status status);
  void EndWell();
  Message Farewell() const;  // when it is over
  bool Enough(double now) const;
  // Tasks that the next view waits for.
  std::vector<job::TaskId> Missing() const;
  Entries::iterator Find(Connection connection);
  void Say(Connection to, Message message, bool close = false);
  std::vector<Outgoing> Flush(double now);

  const RosterSpec spec_;
  Entries entries_;
  std::map<job::TaskId, int64_t> newest_;  // incarnations seen
  std::optional<View> view_;
  int64_t last_epoch_;
  std::string agreement_;
  job::TaskId agreed_by_;
  std::set<job::TaskId> last_members_;  // of the last view
  std::set<job::TaskId> left_;          // for good: not waited for until they join again
  Broken last_broken_;
  bool last_reported_ = false;  // by a member, of a peer that lives for all we know
  std::string said_waiting_;
  int64_t last_step_ = -1;
  int views_without_step_ = 0;
  double forming_since_ = -1;  // a member waits for the next view since then; < 0: none does
  double wake_at_ = 0;
  double ran_at_ = 0;
  absl::Status status_;
  bool trained_ = false;
  std::map<job::TaskId, double> evaluators_away_;  // since when; of those that have not left
  bool over_ = false;
  std::vector<Outgoing> out_;
};

}  // namespace muster::membership
