// SlotTable: what a launcher by slots knows and decides. It is pure: no threads, no files, no
// network, and the time is given. slot_launcher.h makes a control::Launcher of it.
//
// The promise: no incarnation ever runs twice, whatever messages are lost, late or repeated, and
// whatever provider or coordinator is started again, even though an older attempt of the provider
// may still act. Three rules ensure it.
//
//   Wanted once.  Only one coordinator wants an incarnation, of only one provider attempt.
//                 wanted_up_to(), which is durable before an answer goes out, tells later
//                 coordinators what they must not want again: such an incarnation is lost, and the
//                 next one follows.
//   Let in once.  An agent gets the order to start its task only if its slot is the only one of its
//                 incarnation, and only from the coordinator that wanted it. A slot that was
//                 started too late, or twice, waits until it is killed. That it may be let in is
//                 durable before it is (SlotMemory::may_run), so that a later coordinator knows of
//                 all others that their tasks never ran and never will.
//   Surely ended. An incarnation has ended when the provider says that its slot has, or when its
//                 task was never let in and never will be. One that is merely not seen may run: the
//                 coordinator's lease decides (control::LauncherTraits::sees_ends is false).
//
// What a provider reports makes the table no larger than what was ever wanted: a slot of an
// incarnation that no answer wanted, or of another task than the one that has its number, is a
// stranger's. It is to end, its agent is not let in, and nothing is kept of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/control/launcher.h"
#include "muster/job/reconcile.h"
#include "muster/launch/slots/slot_messages.h"

namespace muster::launch::slots {

using control::Admission;

// The incarnations whose agents may have been let in, but for those that others replaced, with
// their processes (Slot::process). Later coordinators of the job must know them.
using MayRun = std::map<std::pair<job::TaskId, int64_t>, std::string>;

// What is known of the job's earlier coordinators.
struct SlotMemory {
  // The highest incarnation that the journal has: each up to it may have been wanted.
  int64_t started_up_to = 0;
  MayRun may_run = {};
};

// One owner thread.
class SlotTable {
 public:
  // `before`: with may_run() of the job's last coordinator. `now`: monotonic seconds, as everywhere
  // in this class. `gone_seconds`: agents of earlier coordinators have ended when they had no
  // answer for this long.
  SlotTable(SlotMemory before, double now, double gone_seconds);
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  // As in control::Launcher; both are idempotent. What is wanted is in the journal before.
  void Want(const WantedSlot& wanted);
  void Kill(job::TaskId task, int64_t incarnation);

  // Takes a report and returns the answer.
  ProviderAnswer Take(const ProviderReport& report, double now);
  const MayRun& may_run() const { return may_run_; }
  // Whether may_run(), as it is, is durable. Until then no more agents are let in.
  bool is_kept() const { return may_run_ == kept_; }
  void NoteKept() { kept_ = may_run_; }

  // Whether the agent of a slot is the one that runs its incarnation. `runs`: the agent says that
  // it has received the order to start its task.
  Admission Admits(job::TaskId task, int64_t incarnation, const std::string& slot, bool runs);

  // For each incarnation that was wanted, killed or seen and not replaced by another one of its
  // task: kStarting while it may run, kEnded when it certainly does not and never will.
  std::vector<job::TaskObservation> Observe(double now);

  // Call it when the job has ended: every slot must end, and then the provider.
  void SetFinal(const std::string& final) { final_ = final; }
  // Whether the provider has received this and has no slot any more.
  bool emptied() const { return emptied_; }
  // Where the slot of the incarnation is, for people; "" if that is not known.
  std::string GetHost(job::TaskId task, int64_t incarnation) const;
  // Whether the incarnation is wanted and the platform has given no process for it yet.
  bool LacksProcess(job::TaskId task, int64_t incarnation) const;
  // What the provider says that it gives, for people; "" before its first report.
  const std::string& gives() const { return gives_; }
  // When the newest attempt last reported; none: it never has.
  std::optional<double> heard_at() const { return heard_at_; }

 private:
  using Key = MayRun::key_type;
  struct Entry {
    std::optional<WantedSlot> wanted;
    bool inherited = false;  // an earlier coordinator may have wanted it
    int64_t asked_of = 0;    // the attempt that was told that it is wanted; 0: none
    bool killed = false;
    std::string admitted;    // the slot whose agent was let in
    bool heard = false;      // an earlier coordinator let that agent in, and it says that it runs
    bool disrupted = false;  // this table ends it, for no fault of its task
    bool over = false;       // it does not run and never will
    std::optional<Slot> end;
  };

  static job::TaskEnd GetEnd(const Entry& entry);
  Entry& GetEntry(const Key& key);
  bool IsReplaced(const Key& key) const;
  std::span<const Slot* const> GetSlots(const Key& key) const;
  bool IsStranger(const Key& key) const;
  bool MayHaveRun(const Key& key, const Entry& entry) const;
  void Remember(const Key& key, const Entry& entry);
  void SeeSlots();
  void SeeEnds(const std::vector<EndedProcess>& ended);
  void Judge(const Key& key, Entry& entry);
  void Forget(job::TaskId task);
  ProviderAnswer AnswerTo(const ProviderReport& report);
  bool MustEnd(const Slot& slot, const Entry& entry) const;

  const SlotMemory before_;
  const double began_at_, gone_seconds_;
  int64_t wanted_up_to_;   // the highest incarnation that this one or an earlier one wanted
  MayRun may_run_, kept_;  // kept_: what of may_run_ is durable
  int64_t attempt_ = 0, sequence_ = 0;                // of the newest report of the newest attempt
  std::vector<Slot> slots_;                           // what it said
  std::map<Key, std::vector<const Slot*>> slots_of_;  // of those, by incarnation; no strangers
  std::map<Key, Entry> entries_;
  std::map<int64_t, job::TaskId> tasks_;   // by the number of each incarnation that is known
  std::map<job::TaskId, int64_t> newest_;  // incarnation of each task
  std::string final_, gives_;
  bool emptied_ = false;
  std::optional<double> heard_at_;
};

}  // namespace muster::launch::slots
