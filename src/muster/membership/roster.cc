#include "muster/membership/roster.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/base/agreement.h"

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;

// After this many views without a step between them the training ends.
constexpr int kMaxViewsWithoutStep = 5;
// After this many reports of one link, in views without a step between them, one of its ends is
// given up.
constexpr int kReportsOfALink = 2;
constexpr double kTickSeconds = 1;

std::string GetNames(const std::vector<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ",
                       [](std::string* out, TaskId task) { *out += job::TaskName(task); });
}

bool IsChief(TaskType type) { return type == TaskType::kChief || type == TaskType::kMaster; }

// The order of task types in a view: replicas first.
int GetPlace(TaskType type) {
  switch (type) {
    case TaskType::kChief:
    case TaskType::kMaster:
      return 0;
    case TaskType::kWorker:
      return 1;
    case TaskType::kPs:
      return 2;
    case TaskType::kEvaluator:
      return 3;
  }
  return 3;
}

}  // namespace

bool IsReplica(TaskType type) { return IsChief(type) || type == TaskType::kWorker; }

std::vector<Roster::Outgoing> Roster::OnMessage(Connection from, const Message& message,
                                                double now) {
  NoticeSleep(now);
  if (const auto entry = Find(from); entry != entries_.end()) entry->second.heard_at = now;
  if (over_) {
    Say(from, Farewell(), /*close=*/true);
    return Flush(now);
  }
  if (message.join) OnJoin(from, *message.join, now);
  if (message.failure) OnFailure(from, *message.failure, now);
  if (message.leave) OnLeave(from, now);
  if (message.away) OnAway(from, now);
  TryForm(now);
  return Flush(now);
}

std::vector<Roster::Outgoing> Roster::OnClosed(Connection from, std::string_view cause,
                                               double now) {
  if (const auto entry = Find(from); entry != entries_.end() && !over_) {
    entry->second.connection = 0;
    Drop(entry, cause, /*planned=*/false, now);
    TryForm(now);
  }
  return Flush(now);
}

std::vector<Roster::Outgoing> Roster::OnTick(double now) {
  NoticeSleep(now);
  if (!over_) {
    ExpireSilent(now);
    TryForm(now);
    SeekEvaluators(now);
    // After the last checkpoint no view is needed: members that wait are told of the end.
    if (!over_ && !trained_ && forming_since_ >= 0 &&
        now >= forming_since_ + spec_.rendezvous_seconds) {
      GiveUp();
    } else {
      SayWaiting(now);
    }
  }
  return Flush(now);
}

// Tells the members that wait which tasks are missing, each time that changes; not in the first
// second, in which all tasks start.
void Roster::SayWaiting(double now) {
  if (over_ || forming_since_ < 0 || now < forming_since_ + kTickSeconds) return;
  std::string waiting = GetNames(Missing());
  if (waiting == said_waiting_) return;
  for (const auto& [task, entry] : entries_) {
    if (entry.ready) Say(entry.connection, {.waiting = waiting});
  }
  said_waiting_ = std::move(waiting);
}

std::string Roster::WhyRefused(const Join& join) const {
  const MemberId& id = join.member.id;
  if (std::find(spec_.tasks.begin(), spec_.tasks.end(), id.task) == spec_.tasks.end()) {
    return StrCat("this job has no ", job::TaskName(id.task), ": its tasks are ",
                  GetNames(spec_.tasks));
  }
  const auto newest = newest_.find(id.task);
  if (newest != newest_.end() && id.incarnation < newest->second) {
    return StrCat(Describe(id), " was replaced by incarnation ", newest->second,
                  ": it is fenced and must end");
  }
  if (agreement_.empty()) return "";
  const std::string difference = DescribeDifference({job::TaskName(id.task), join.agreement},
                                                    {job::TaskName(agreed_by_), agreement_});
  if (difference.empty()) return "";
  return StrCat(difference,
                ": all tasks of a job must be started with the same cluster, model file, data, "
                "flags and version");
}

// A task that is refused repeatedly for the same reason is noted once.
void Roster::Refuse(Connection from, job::TaskId task, std::string why) {
  std::string& before = refused_[task];
  if (before != why) refusals_.push_back(StrCat("refused ", job::TaskName(task), ": ", why));
  before = why;
  Say(from, {.refused = std::move(why)}, /*close=*/true);
}

void Roster::OnJoin(Connection from, const Join& join, double now) {
  const MemberId& id = join.member.id;
  if (std::string why = WhyRefused(join); !why.empty()) {
    return Refuse(from, id.task, std::move(why));
  }
  newest_[id.task] = id.incarnation;
  left_.erase(id.task);
  refused_.erase(id.task);
  if (agreement_.empty()) {
    agreement_ = join.agreement;
    agreed_by_ = id.task;
  }
  last_generation_ = std::max(last_generation_, join.last_generation);
  const auto old = entries_.find(id.task);
  if (old != entries_.end() && old->second.connection != from) {
    Drop(old, id == old->second.member.id ? "has connected anew" : "was started again",
         /*planned=*/false, now);
  } else if (old != entries_.end() && old->second.in_view) {
    Break(id, "asks to join again", /*planned=*/false, now);
  }
  entries_[id.task] = {
      .member = join.member, .connection = from, .heard_at = now, .ready = true, .in_view = false};
  if (!IsReplica(id.task.type) && id.task.type != TaskType::kPs) {
    if (view_) Say(from, {.view = view_});
    if (trained_) Say(from, {.trained = true});
    return;
  }
  if (view_) Break(id, "joins", /*planned=*/true, now);
  if (forming_since_ < 0) forming_since_ = now;
}

void Roster::OnFailure(Connection from, const Broken& failure, double now) {
  const auto reporter = Find(from);
  if (!view_ || failure.generation != view_->generation || reporter == entries_.end()) return;
  const auto culprit = entries_.find(failure.culprit.task);
  if (culprit == entries_.end() || !culprit->second.in_view) return;
  const MemberId seer = failure.seen_by.value_or(reporter->second.member.id);
  const MemberId lost = culprit->second.member.id;
  if (seer.task != lost.task && GiveUpOne(seer, lost, failure.cause, now)) return;
  const bool is_said = failure.cause.find("seen by ") != std::string::npos;
  const std::string by = is_said ? "" : StrCat(" (seen by ", job::TaskName(seer.task), ")");
  Break(lost, StrCat(failure.cause, by), /*planned=*/false, now);
  last_reported_ = true;
}

// Two members that seem to be alive cannot reach each other: gives up one of them if the others can
// continue without it. False: none is given up.
bool Roster::GiveUpOne(const MemberId& reporter, const MemberId& culprit, std::string_view cause,
                       double now) {
  const MemberId &a = std::min(reporter, culprit), &b = std::max(reporter, culprit);
  const Link link = {a.task, b.task};
  const int reports = ++broken_links_[{link, a.incarnation, b.incarnation}];
  if (reports < (cut_links_.contains(link) ? 1 : kReportsOfALink)) return false;
  const auto in_view = [](const auto& each) {
    return each.second.in_view && IsReplica(each.first.type);
  };
  const auto replicas = std::count_if(entries_.begin(), entries_.end(), in_view);
  const bool enough = spec_.min_replicas > 0 && replicas > spec_.min_replicas;
  // `b` is later in the order and therefore not the chief, since `a` is another task.
  const auto given_up = entries_.find(b.task);
  if (!enough || given_up == entries_.end() || b.task.type != TaskType::kWorker) return false;
  cut_links_.insert(link);
  last_members_.erase(b.task);
  const std::string why = StrCat("cannot reach ", Describe(a), " (", cause, ")");
  Say(given_up->second.connection,
      {.refused =
           StrCat(Describe(b), " ", why, ": it is given up, and the others continue without it; ",
                  "mend the network between the two")},
      /*close=*/true);
  given_up->second.connection = 0;
  Drop(given_up, StrCat(why, ": it is given up"), /*planned=*/false, now);
  return true;
}

void Roster::OnLeave(Connection from, double now) {
  const auto entry = Find(from);
  if (entry == entries_.end()) return;
  if (!IsChief(entry->first.type)) {
    left_.insert(entry->first);
    entry->second.connection = 0;
    Say(from, {.leave = true}, /*close=*/true);
    Drop(entry, "leaves", /*planned=*/true, now);
    return;
  }
  EndWell();
}

// Treats the member as lost at once, before its connection closes. If fewer replicas suffice, the
// others do not wait for its replacement, which may join later.
void Roster::OnAway(Connection from, double now) {
  const auto entry = Find(from);
  if (entry == entries_.end()) return;
  last_members_.erase(entry->first);
  Drop(entry, "was told to end (SIGTERM)", /*planned=*/true, now);
}

void Roster::EndWell() {
  over_ = true;
  for (const auto& [task, each] : entries_) Say(each.connection, Farewell(), /*close=*/true);
}

std::vector<Roster::Outgoing> Roster::OnTrained(double now) {
  trained_ = true;
  for (const auto& [task, entry] : entries_) {
    if (task.type == TaskType::kEvaluator) Say(entry.connection, {.trained = true});
  }
  SeekEvaluators(now);
  return Flush(now);
}

void Roster::SeekEvaluators(double now) {
  if (!trained_) return;
  for (const TaskId task : spec_.tasks) {
    if (task.type != TaskType::kEvaluator || entries_.contains(task) || left_.contains(task)) {
      evaluators_away_.erase(task);
    } else {
      evaluators_away_.try_emplace(task, now);
    }
  }
}

absl::StatusOr<bool> Roster::evaluated(double now) const {
  for (const auto& [task, since] : evaluators_away_) {
    if (now < since + spec_.rendezvous_seconds) continue;
    return absl::DeadlineExceededError(StrCat(
        "waited ", spec_.rendezvous_seconds, " s for ", job::TaskName(task),
        " to evaluate the last checkpoint, and it is away; all is trained and saved, 'muster "
        "evaluate' evaluates it"));
  }
  return std::all_of(spec_.tasks.begin(), spec_.tasks.end(), [this](TaskId task) {
    return task.type != TaskType::kEvaluator || left_.contains(task);
  });
}

std::vector<Roster::Outgoing> Roster::OnEnd(double now) {
  if (!over_) EndWell();
  return Flush(now);
}

// Removes a member. If its connection is still open, it is told why and closed.
void Roster::Drop(Entries::iterator entry, std::string_view cause, bool planned, double now) {
  const Entry dropped = entry->second;
  entries_.erase(entry);
  const bool breaks = dropped.in_view && view_.has_value();
  if (breaks) Break(dropped.member.id, cause, planned, now);
  if (dropped.connection != 0) {
    const Broken broken = {
        .generation = last_generation_, .culprit = dropped.member.id, .cause = std::string(cause)};
    Say(dropped.connection, {.broken = broken}, /*close=*/true);
  }
}

void Roster::Break(const MemberId& culprit, std::string_view cause, bool planned, double now) {
  if (!view_) return;
  const Broken broken = {.generation = view_->generation,
                         .culprit = culprit,
                         .cause = std::string(cause),
                         .planned = planned};
  view_.reset();
  last_broken_ = broken;
  last_reported_ = false;
  forming_since_ = now;
  for (auto& [task, entry] : entries_) {
    if (!entry.in_view) continue;
    entry.in_view = entry.ready = false;
    Say(entry.connection, {.broken = broken});
  }
}

std::vector<TaskId> Roster::Missing() const {
  std::vector<TaskId> missing;
  for (const TaskId task : spec_.tasks) {
    if (GetPlace(task.type) > GetPlace(TaskType::kPs) || left_.contains(task)) continue;
    const auto entry = entries_.find(task);
    if (entry == entries_.end() || !entry->second.ready) missing.push_back(task);
  }
  return missing;
}

bool Roster::Enough(double now) const {
  const std::vector<TaskId> missing = Missing();
  int replicas = 0;
  for (const auto& [task, entry] : entries_) replicas += IsReplica(task.type) && entry.ready;
  if (spec_.min_replicas > 0 && replicas < spec_.min_replicas) return false;
  if (missing.empty()) return replicas > 0;
  // A connected member will join soon: it is waited for until its lease is over.
  const bool can_do_without = std::all_of(missing.begin(), missing.end(), [this](TaskId task) {
    return task.type == TaskType::kWorker && !entries_.contains(task);
  });
  if (spec_.min_replicas == 0 || !can_do_without) return false;
  // Tasks that were not in the last view either are not waited for again.
  const bool known = !last_members_.empty() &&
                     std::none_of(missing.begin(), missing.end(),
                                  [this](TaskId task) { return last_members_.contains(task); });
  return known || now >= forming_since_ + spec_.settle_seconds;
}

void Roster::TryForm(double now) {
  if (over_ || view_ || forming_since_ < 0 || !Enough(now)) return;
  View view = {.generation = ++last_generation_};
  for (auto& [task, entry] : entries_) {
    if (!entry.ready || GetPlace(task.type) > GetPlace(TaskType::kPs)) continue;
    view.members.push_back(entry.member);
    view.replicas += IsReplica(task.type);
    entry.in_view = true;
    entry.ready = false;
  }
  std::sort(view.members.begin(), view.members.end(), [](const Member& a, const Member& b) {
    const TaskId x = a.id.task, y = b.id.task;
    return std::pair(GetPlace(x.type), x) < std::pair(GetPlace(y.type), y);
  });
  forming_since_ = -1;
  said_waiting_.clear();
  last_members_.clear();
  for (const Member& member : view.members) last_members_.insert(member.id.task);
  const int64_t step = view.members[static_cast<size_t>(view.source())].step;
  views_without_step_ = step > last_step_ || !last_reported_ ? 0 : views_without_step_ + 1;
  if (step > last_step_) broken_links_.clear();
  last_step_ = std::max(last_step_, step);
  if (views_without_step_ >= kMaxViewsWithoutStep) {
    End(absl::UnavailableError(StrCat("no step was done in ", kMaxViewsWithoutStep,
                                      " attempts one after the other; the last ended because ",
                                      Describe(last_broken_.culprit), " ", last_broken_.cause)));
    return;
  }
  view_ = std::move(view);
  for (const auto& [task, entry] : entries_) Say(entry.connection, {.view = view_});
}

// If this host did not run for a lease (stopped, suspended with its machine), its members have
// given it up: it breaks the view, and must not confirm the generation until the members join
// again.
void Roster::NoticeSleep(double now) {
  const double silent = now - std::exchange(ran_at_, now);
  if (over_ || !view_ || silent < spec_.lease_seconds) return;
  Break(view_->members.front().id, StrCat("did not run for ", silent, " s"), /*planned=*/false,
        now);
}

void Roster::ExpireSilent(double now) {
  while (true) {
    const auto silent = std::find_if(entries_.begin(), entries_.end(), [&](const auto& each) {
      return now >= each.second.heard_at + spec_.lease_seconds;
    });
    if (silent == entries_.end()) return;
    Drop(silent, StrCat("was silent for ", spec_.lease_seconds, " s"), /*planned=*/false, now);
  }
}

void Roster::GiveUp() {
  const std::vector<TaskId> missing = Missing();
  std::string why = StrCat("waited ", spec_.rendezvous_seconds, " s for ", GetNames(missing));
  for (const TaskId task : missing) {
    const auto refused = refused_.find(task);
    if (refused == refused_.end()) continue;
    why += StrCat("; ", job::TaskName(task), " came and was refused, since ", refused->second);
  }
  if (!last_broken_.cause.empty()) {
    why += StrCat("; before that ", Describe(last_broken_.culprit), " ", last_broken_.cause);
  }
  why += ": look why it did not come, or give --rendezvous-timeout";
  End(absl::DeadlineExceededError(why));
}

void Roster::End(absl::Status status) {
  status_ = std::move(status);
  over_ = true;
  for (const auto& [task, entry] : entries_) Say(entry.connection, Farewell(), /*close=*/true);
}

// Tells a member the end, also one that comes late: a failure must not look like a success.
Message Roster::Farewell() const {
  if (status_.ok()) return {.leave = true};
  return {.refused = std::string(ToStd(status_.message()))};
}

Roster::Entries::iterator Roster::Find(Connection connection) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const auto& each) { return each.second.connection == connection; });
}

void Roster::Say(Connection to, Message message, bool close) {
  if (to != 0) out_.push_back({.to = to, .message = std::move(message), .close = close});
}

std::vector<Roster::Outgoing> Roster::Flush(double now) {
  wake_at_ = now + kTickSeconds;
  return std::exchange(out_, {});
}

}  // namespace muster::membership
