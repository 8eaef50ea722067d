// Roster: the host's side of membership, as a pure state machine: events and a clock in, messages
// out. The same code runs in a job and in the simulation (simulation_test.cc).
//
// A view forms when every expected task has joined. If workers are missing and min_replicas allows
// it, a view forms without them: at once if none of them was in the last view, else after
// settle_seconds; the first view always waits settle_seconds. A view breaks when a member's
// connection closes, when a member is silent for a lease, when another incarnation of it joins,
// when it reports that it was told to end, when a member reports a peer that it cannot reach, or
// when a task joins that is not in the view. Members of a broken generation must join again, saying
// which step they have. If two live peers repeatedly cannot reach each other, without a step in
// between, the later of them in the order of tasks (never the chief) is given up if the others are
// enough; else the training ends. In both cases the message names both. After a view that ended
// without a step because of such a report the next one waits 0.25 s, then 1 s, 4 s and 8 s; the
// fifth in a row ends the training.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "muster/membership/view.h"

namespace muster::membership {

struct RosterSpec {
  std::vector<job::TaskId> tasks = {};  // all tasks that may join
  // The settings that must be the same in all tasks, with the values of the first of `tasks`; "":
  // the values of the first task that joins count.
  std::string agreement = {};
  int min_replicas = 0;             // this many suffice for a view; 0: all are needed
  double lease_seconds = 10;        // a member that is silent for longer is lost
  double settle_seconds = 3;        // how long a smaller view waits for missing workers
  double rendezvous_seconds = 300;  // after this wait training fails and names the missing tasks
  // The first generation's number. A restarted host must begin with a higher number than any that
  // the previous host may have used, since all members that know of a generation may be lost.
  int64_t first_generation = 1;
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
    bool close = false;  // close the connection after the message
  };

  explicit Roster(RosterSpec spec)
      : spec_(std::move(spec)),
        last_generation_(spec_.first_generation - 1),
        agreement_(spec_.agreement) {
    if (!spec_.tasks.empty()) agreed_by_ = spec_.tasks.front();
  }

  std::vector<Outgoing> OnMessage(Connection from, const Message& message, double now);
  // Called when a connection has closed; `cause` says how.
  std::vector<Outgoing> OnClosed(Connection from, std::string_view cause, double now);
  std::vector<Outgoing> OnTick(double now);
  // Called when the chief has written its last checkpoint. Evaluators are informed, also those that
  // connect later. Other tasks are not, since a replacement of the chief may still need them.
  std::vector<Outgoing> OnTrained(double now);
  // Call it after OnTrained: returns whether every evaluator has left. DEADLINE_EXCEEDED: one has
  // been away for rendezvous_seconds.
  absl::StatusOr<bool> evaluated(double now) const;
  // Called when the chief reports that training is over. All members are informed, also those that
  // connect later. `stopped`: it was stopped before its end. Replicas get that as an error then,
  // and those that connect later get no answer: the next chief is the one that they wait for.
  std::vector<Outgoing> OnEnd(double now, bool stopped = false);
  // For people: which tasks were refused since the last call, and why.
  std::vector<std::string> ConsumeRefusals() { return std::exchange(refusals_, {}); }
  // The latest time at which OnTick must be called.
  double wake_at() const { return wake_at_; }

  // The current view; nullopt between two views.
  const std::optional<View>& view() const { return view_; }
  // Not OK if training has failed, for example because tasks did not join in time.
  const absl::Status& status() const { return status_; }
  bool over() const { return over_; }

 private:
  struct Entry {
    Member member;
    Connection connection = 0;
    int64_t known_view = 0;  // as in Join
    double heard_at = 0;
    bool ready = false;  // the member has joined for the next view
    bool in_view = false;
  };
  using Entries = std::map<job::TaskId, Entry>;

  void OnJoin(Connection from, const Join& join, double now);
  std::string WhyRefused(const Join& join) const;
  void Refuse(Connection from, job::TaskId task, std::string why);
  bool GiveUpOne(const MemberId& reporter, const MemberId& culprit, std::string_view cause,
                 double now);
  void OnFailure(Connection from, const Broken& failure, double now);
  void OnLeave(Connection from, double now);
  void OnAway(Connection from, double now);
  void Drop(Entries::iterator entry, std::string_view cause, double now);
  void Break(const MemberId& culprit, std::string_view cause, bool planned, double now);
  void TryForm(double now);
  double GetPause() const;  // before the next view, in seconds
  int CountViewsWithoutStep() const;
  void SendView(const View& view);
  void NoticeSleep(double now);
  void ExpireSilent(double now);
  void SendWaiting(double now);
  void GiveUp();
  void UpdateAbsentEvaluators(double now);
  void Fail(absl::Status status);
  void EndTraining();
  Message Farewell(job::TaskType to) const;  // the last message to a member when over()
  void SendFarewells();
  bool Enough(double now) const;
  // Tasks that the next view waits for.
  std::vector<job::TaskId> Missing() const;
  static std::string GetNames(const std::vector<job::TaskId>& tasks);
  Entries::iterator Find(Connection connection);
  void Send(Connection to, Message message, bool close = false);
  std::vector<Outgoing> Flush(double now);

  const RosterSpec spec_;
  Entries entries_;
  std::map<Connection, job::TaskId> joined_;  // as whom each connection has joined last
  std::map<job::TaskId, int64_t> newest_;     // the newest incarnation of each task
  std::optional<View> view_;
  int64_t last_generation_;
  std::string agreement_;
  job::TaskId agreed_by_;
  std::optional<View> last_view_;               // the present one, or the one before
  std::set<job::TaskId> last_members_;          // of the last view
  std::set<job::TaskId> left_;                  // left permanently: needed only if they join again
  std::map<job::TaskId, std::string> refused_;  // why a task was refused that has not joined since
  std::vector<std::string> refusals_;           // for the next ConsumeRefusals
  Broken last_broken_;
  bool last_reported_ = false;  // last_broken_ is a member's report of a peer that may be alive
  // How often two tasks (with their incarnations) could not reach each other since the last step.
  using Link = std::pair<job::TaskId, job::TaskId>;
  std::map<std::tuple<Link, int64_t, int64_t>, int> broken_links_;
  std::set<Link> cut_links_;  // one member was given up: its replacement gets one attempt only
  std::string sent_waiting_;
  int64_t last_step_ = -1;
  int views_without_step_ = 0;
  double forming_since_ = -1;  // since when members wait for the next view; < 0: none wait
  double wake_at_ = 0;
  double ran_at_ = 0;
  absl::Status status_;
  bool trained_ = false;
  // Since when each absent evaluator, which has not left permanently, is away.
  std::map<job::TaskId, double> evaluators_away_;
  bool over_ = false;
  bool stopped_ = false;  // as in OnEnd
  std::vector<Outgoing> out_;
};

}  // namespace muster::membership
