// Roster: when a view forms, and when it breaks.
#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/membership/roster.h"
#include "muster/membership/view_change.h"

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;

// The training ends after this many views in a row without a step.
constexpr int kMaxViewsWithoutStep = 5;
// How long the second of them waits; each other one waits four times as long as the one before.
constexpr double kFirstPauseSeconds = 0.25, kLongestPauseSeconds = 8;

}  // namespace

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
    Send(entry.connection, {.broken = broken});
  }
}

std::vector<TaskId> Roster::Missing() const {
  std::vector<TaskId> missing;
  for (const TaskId task : spec_.tasks) {
    if (GetTypeOrder(task.type) > GetTypeOrder(TaskType::kPs) || left_.contains(task)) continue;
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
  // A connected member will join soon: the view waits for it until its lease expires.
  const bool can_do_without = std::all_of(missing.begin(), missing.end(), [this](TaskId task) {
    return task.type == TaskType::kWorker && !entries_.contains(task);
  });
  if (spec_.min_replicas == 0 || !can_do_without) return false;
  // The view does not wait again for tasks that the last view did not have either.
  const bool known = !last_members_.empty() &&
                     std::none_of(missing.begin(), missing.end(),
                                  [this](TaskId task) { return last_members_.contains(task); });
  return known || now >= forming_since_ + spec_.settle_seconds;
}

// A network that is interrupted for a moment does not use up all attempts within it.
double Roster::GetPause() const {
  const int without_step = CountViewsWithoutStep();
  if (without_step == 0 || without_step >= kMaxViewsWithoutStep) return 0;
  const double longest = std::min(kLongestPauseSeconds, spec_.rendezvous_seconds / 4);
  return std::min(kFirstPauseSeconds * std::pow(4, without_step - 1), longest);
}

// As it is if a view is formed of the members that are ready.
int Roster::CountViewsWithoutStep() const {
  if (!last_reported_) return 0;
  StateId newest;
  for (const auto& [task, entry] : entries_) {
    if (entry.ready && IsReplica(task.type)) newest = std::max(newest, entry.member.state());
  }
  return newest.step > last_step_ ? 0 : views_without_step_ + 1;
}

void Roster::TryForm(double now) {
  if (over_ || view_ || forming_since_ < 0 || !Enough(now)) return;
  if (now < forming_since_ + GetPause()) return;
  views_without_step_ = CountViewsWithoutStep();
  View view = {.generation = ++last_generation_};
  for (auto& [task, entry] : entries_) {
    if (!entry.ready || GetTypeOrder(task.type) > GetTypeOrder(TaskType::kPs)) continue;
    view.members.push_back(entry.member);
    view.replicas += IsReplica(task.type);
    entry.in_view = true;
    entry.ready = false;
  }
  SortMembers(&view.members);
  forming_since_ = -1;
  sent_waiting_.clear();
  last_members_.clear();
  for (const Member& member : view.members) last_members_.insert(member.id.task);
  const int64_t step = view.members[static_cast<size_t>(view.source())].step;
  if (step > last_step_) broken_links_.clear();
  last_step_ = std::max(last_step_, step);
  if (views_without_step_ >= kMaxViewsWithoutStep) {
    Fail(absl::UnavailableError(StrCat("no step was done in ", kMaxViewsWithoutStep,
                                       " attempts in a row; the last one ended because ",
                                       Describe(last_broken_.culprit), " ", last_broken_.cause)));
    return;
  }
  SendView(view);
  view_ = std::move(view);
  last_view_ = view_;
}

// Members that have the view before this one get only what differs from it.
void Roster::SendView(const View& view) {
  std::optional<ViewChange> change;
  if (last_view_) change = GetChange(*last_view_, view);
  for (const auto& [task, entry] : entries_) {
    if (change && entry.known_view == change->base) {
      Send(entry.connection, {.change = change});
    } else {
      Send(entry.connection, {.view = view});
    }
  }
}

// If this host did not run for the length of a lease (it was stopped, or its machine suspended),
// its members have given it up. It then breaks the view, and must not confirm the generation until
// the members join again.
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
    Drop(silent, StrCat("was silent for ", spec_.lease_seconds, " s"), now);
  }
}

void Roster::GiveUp() {
  const std::vector<TaskId> missing = Missing();
  std::string why = StrCat("waited ", spec_.rendezvous_seconds, " s for ", GetNames(missing));
  for (const TaskId task : missing) {
    const auto refused = refused_.find(task);
    if (refused == refused_.end()) continue;
    why += StrCat("; ", job::TaskName(task), " asked to join and was refused: ", refused->second);
  }
  if (!last_broken_.cause.empty()) {
    why += StrCat("; before that ", Describe(last_broken_.culprit), " ", last_broken_.cause);
  }
  why += ": find out why it did not join, or give a longer --rendezvous-timeout";
  Fail(absl::DeadlineExceededError(why));
}

}  // namespace muster::membership
