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

// If a link is reported this many times without a step in between, one of its two members is given
// up.
constexpr int kReportsOfALink = 2;
constexpr double kTickSeconds = 1;

constexpr char kStopped[] =
    "the chief has stopped training before its end; the same command continues it";

bool IsChief(TaskType type) { return type == TaskType::kChief || type == TaskType::kMaster; }

}  // namespace

bool IsReplica(TaskType type) { return IsChief(type) || type == TaskType::kWorker; }

std::vector<Roster::Outgoing> Roster::OnMessage(Connection from, const Message& message,
                                                double now) {
  NoticeSleep(now);
  if (const auto entry = Find(from); entry != entries_.end()) entry->second.heard_at = now;
  if (over_) {
    const auto entry = Find(from);
    const bool is_member = entry != entries_.end();
    Message answer = Farewell(is_member ? entry->first.type : TaskType::kWorker);
    if (stopped_ && !is_member) answer = Message();
    Send(from, std::move(answer), /*close=*/true);
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
    Drop(entry, cause, now);
    TryForm(now);
  }
  joined_.erase(from);
  return Flush(now);
}

std::vector<Roster::Outgoing> Roster::OnTick(double now) {
  NoticeSleep(now);
  if (!over_) {
    ExpireSilent(now);
    TryForm(now);
    UpdateAbsentEvaluators(now);
    // After the last checkpoint no view is needed: the waiting members will be told that training
    // is over.
    if (!over_ && !trained_ && forming_since_ >= 0 &&
        now >= forming_since_ + spec_.rendezvous_seconds) {
      GiveUp();
    } else {
      SendWaiting(now);
    }
  }
  return Flush(now);
}

std::string Roster::GetNames(const std::vector<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ",
                       [](std::string* out, TaskId task) { *out += job::TaskName(task); });
}

// Tells the waiting members which tasks are missing, each time that changes; but not during the
// first second, in which all tasks start.
void Roster::SendWaiting(double now) {
  if (over_ || forming_since_ < 0 || now < forming_since_ + kTickSeconds) return;
  std::string waiting = GetNames(Missing());
  if (waiting == sent_waiting_) return;
  for (const auto& [task, entry] : entries_) {
    if (entry.ready) Send(entry.connection, {.waiting = waiting});
  }
  sent_waiting_ = std::move(waiting);
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

// Notes a task once, even if it is refused repeatedly for the same reason.
void Roster::Refuse(Connection from, job::TaskId task, std::string why) {
  std::string& before = refused_[task];
  if (before != why) refusals_.push_back(StrCat("refused ", job::TaskName(task), ": ", why));
  before = why;
  Send(from, {.refused = std::move(why)}, /*close=*/true);
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
    Drop(old, id == old->second.member.id ? "connected again" : "was started again", now);
  } else if (old != entries_.end() && old->second.in_view) {
    Break(id, "asks to join again", /*planned=*/false, now);
  }
  joined_[from] = id.task;
  entries_[id.task] = {.member = join.member,
                       .connection = from,
                       .known_view = join.known_view,
                       .heard_at = now,
                       .ready = true,
                       .in_view = false};
  if (!IsReplica(id.task.type) && id.task.type != TaskType::kPs) {
    if (view_) Send(from, {.view = view_});
    if (trained_) Send(from, {.trained = true});
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

// Called when two members that seem to be alive cannot reach each other. Gives up one of them if
// the others can continue without it, and returns whether it did.
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
  Send(given_up->second.connection,
       {.refused =
            StrCat(Describe(b), " ", why, ": it is given up, and the others continue without it; ",
                   "repair the network between the two")},
       /*close=*/true);
  given_up->second.connection = 0;
  Drop(given_up, StrCat(why, ": it is given up"), now);
  return true;
}

void Roster::OnLeave(Connection from, double now) {
  const auto entry = Find(from);
  if (entry == entries_.end()) return;
  if (!IsChief(entry->first.type)) {
    left_.insert(entry->first);
    entry->second.connection = 0;
    Send(from, {.leave = true}, /*close=*/true);
    Drop(entry, "leaves", now);
    return;
  }
  EndTraining();
}

// Treats the member as lost at once, before its connection closes. If fewer replicas suffice, the
// others do not wait for its replacement, which may join later.
void Roster::OnAway(Connection from, double now) {
  const auto entry = Find(from);
  if (entry == entries_.end()) return;
  last_members_.erase(entry->first);
  Drop(entry, "was told to end (SIGTERM)", now);
}

void Roster::EndTraining() {
  over_ = true;
  SendFarewells();
}

std::vector<Roster::Outgoing> Roster::OnTrained(double now) {
  trained_ = true;
  for (const auto& [task, entry] : entries_) {
    if (task.type == TaskType::kEvaluator) Send(entry.connection, {.trained = true});
  }
  UpdateAbsentEvaluators(now);
  return Flush(now);
}

void Roster::UpdateAbsentEvaluators(double now) {
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
    return absl::DeadlineExceededError(
        StrCat("waited ", spec_.rendezvous_seconds, " s for ", job::TaskName(task),
               " to evaluate the last checkpoint; the training is complete and saved: run 'muster "
               "evaluate' to evaluate it"));
  }
  return std::all_of(spec_.tasks.begin(), spec_.tasks.end(), [this](TaskId task) {
    return task.type != TaskType::kEvaluator || left_.contains(task);
  });
}

std::vector<Roster::Outgoing> Roster::OnEnd(double now, bool stopped) {
  stopped_ = stopped_ || (stopped && !over_);
  if (!over_) EndTraining();
  return Flush(now);
}

// Removes a member. If its connection is still open, sends it the reason and closes it.
void Roster::Drop(Entries::iterator entry, std::string_view cause, double now) {
  const Entry dropped = entry->second;
  entries_.erase(entry);
  const bool breaks = dropped.in_view && view_.has_value();
  if (breaks) Break(dropped.member.id, cause, /*planned=*/false, now);
  if (dropped.connection != 0) {
    const Broken broken = {
        .generation = last_generation_, .culprit = dropped.member.id, .cause = std::string(cause)};
    Send(dropped.connection, {.broken = broken}, /*close=*/true);
  }
}

void Roster::Fail(absl::Status status) {
  status_ = std::move(status);
  over_ = true;
  SendFarewells();
}

// The last message to a member, even to one that joins late: neither a failure nor a stop must look
// like a success.
Message Roster::Farewell(TaskType to) const {
  if (!status_.ok()) return {.refused = std::string(ToStd(status_.message()))};
  // An evaluator knows by `trained` whether training was complete.
  if (stopped_ && to != TaskType::kEvaluator) return {.refused = kStopped};
  return {.leave = true};
}

void Roster::SendFarewells() {
  for (const auto& [task, entry] : entries_) {
    Send(entry.connection, Farewell(task.type), /*close=*/true);
  }
}

Roster::Entries::iterator Roster::Find(Connection connection) {
  const auto task = joined_.find(connection);
  if (task == joined_.end()) return entries_.end();
  const auto entry = entries_.find(task->second);
  const bool is_its = entry != entries_.end() && entry->second.connection == connection;
  return is_its ? entry : entries_.end();
}

void Roster::Send(Connection to, Message message, bool close) {
  if (to != 0) out_.push_back({.to = to, .message = std::move(message), .close = close});
}

std::vector<Roster::Outgoing> Roster::Flush(double now) {
  wake_at_ = now + kTickSeconds;
  return std::exchange(out_, {});
}

}  // namespace muster::membership
