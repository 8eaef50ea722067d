#include "muster/launch/slots/slot_table.h"

#include <algorithm>

#include "muster/base/strings.h"

namespace muster::launch::slots {
namespace {

using Phase = job::TaskObservation::Phase;

bool IsLive(const Slot& slot) { return slot.state != Slot::State::kEnded; }

}  // namespace

SlotTable::SlotTable(SlotMemory before, double now, double gone_seconds)
    : before_(std::move(before)),
      began_at_(now),
      gone_seconds_(gone_seconds),
      wanted_up_to_(before_.started_up_to),
      may_run_(before_.may_run),
      kept_(before_.may_run) {}

SlotTable::Entry& SlotTable::GetEntry(const Key& key) {
  const auto [found, is_new] = entries_.try_emplace(key);
  if (is_new) {
    found->second.inherited = key.second <= before_.started_up_to;
    tasks_.try_emplace(key.second, key.first);
    int64_t& newest = newest_[key.first];
    newest = std::max(newest, key.second);
  }
  return found->second;
}

// Another incarnation of its task came after it: the journal says that it has ended.
bool SlotTable::IsReplaced(const Key& key) const {
  const auto newest = newest_.find(key.first);
  return newest != newest_.end() && newest->second > key.second;
}

std::span<const Slot* const> SlotTable::GetSlots(const Key& key) const {
  const auto found = slots_of_.find(key);
  if (found == slots_of_.end()) return {};
  return found->second;
}

// A number is one task's, and later coordinators know what was started before them.
bool SlotTable::IsStranger(const Key& key) const {
  if (key.second > wanted_up_to_) return true;
  const auto task = tasks_.find(key.second);
  return task != tasks_.end() && task->second != key.first;
}

void SlotTable::Want(const WantedSlot& wanted) {
  Entry& entry = GetEntry({wanted.task, wanted.incarnation});
  if (!entry.killed && !entry.over) entry.wanted = wanted;
  Forget(wanted.task);
}

void SlotTable::Kill(job::TaskId task, int64_t incarnation) {
  const Key key{task, incarnation};
  Entry& entry = GetEntry(key);
  entry.killed = true;
  Judge(key, entry);
  Forget(task);
}

// Whether some coordinator may have let its agent in.
bool SlotTable::MayHaveRun(const Key& key, const Entry& entry) const {
  return entry.inherited ? before_.may_run.contains(key) : !entry.admitted.empty();
}

// What is certain about an incarnation, after anything that may have changed it.
void SlotTable::Judge(const Key& key, Entry& entry) {
  if (entry.over) return;
  if (entry.inherited && !MayHaveRun(key, entry)) {  // and this coordinator does not let it in
    entry.disrupted = entry.disrupted || !entry.killed;
    entry.over = true;
    return;
  }
  const std::span<const Slot* const> slots = GetSlots(key);
  const bool any_live =
      std::any_of(slots.begin(), slots.end(), [](const Slot* slot) { return IsLive(*slot); });
  if (any_live) return;
  if (!slots.empty()) {
    entry.over = true;
    entry.end = *slots.back();
    return;
  }
  // It has no slot. If its agent was not let in, its task has never run; and from now on it never
  // will.
  const bool never_ran = !MayHaveRun(key, entry);
  const bool given_up = entry.killed || (entry.asked_of != 0 && entry.asked_of != attempt_);
  if (never_ran && given_up) entry.over = true;
}

// Slots that only the provider knows of are incarnations of earlier coordinators.
void SlotTable::SeeSlots() {
  slots_of_.clear();
  for (const Slot& slot : slots_) {
    const Key key{slot.task, slot.incarnation};
    if (IsStranger(key)) continue;
    slots_of_[key].push_back(&slot);
    if (!IsReplaced(key)) GetEntry(key);
  }
  for (auto& [key, entry] : entries_) {
    const std::span<const Slot* const> slots = GetSlots(key);
    const auto live =
        std::count_if(slots.begin(), slots.end(), [](const Slot* slot) { return IsLive(*slot); });
    // Two of them, and nobody knows which one runs the task: both end.
    if (live > 1 && entry.admitted.empty()) {
      entry.disrupted = entry.disrupted || !entry.killed;
      entry.killed = true;
    }
    Judge(key, entry);
    Remember(key, entry);
  }
  const auto is_replaced = [this](const auto& item) { return IsReplaced(item.first); };
  std::erase_if(entries_, is_replaced);
  std::erase_if(may_run_, is_replaced);
}

// Its agent may be let in from now on.
void SlotTable::Remember(const Key& key, const Entry& entry) {
  if (entry.inherited || entry.killed || entry.over) return;
  const std::span<const Slot* const> slots = GetSlots(key);
  if (slots.size() != 1 || slots[0]->state != Slot::State::kRunning) return;
  may_run_[key] = slots[0]->process;
}

// Nobody but the memory knows whose processes these were.
void SlotTable::SeeEnds(const std::vector<EndedProcess>& ended) {
  if (ended.empty()) return;
  std::map<std::string, Key> keys;
  for (const auto& [key, process] : may_run_) {
    if (!process.empty() && GetSlots(key).empty()) keys.emplace(process, key);
  }
  for (const EndedProcess& each : ended) {
    const auto key = keys.find(each.process);
    if (key == keys.end()) continue;
    Entry& entry = GetEntry(key->second);
    if (entry.over) continue;
    entry.over = true;
    entry.end = Slot{.id = each.process,
                     .task = key->second.first,
                     .incarnation = key->second.second,
                     .state = Slot::State::kEnded,
                     .exit_code = each.exit_code,
                     .disrupted = each.disrupted,
                     .detail = each.detail};
  }
}

// The task's incarnations that were replaced.
void SlotTable::Forget(job::TaskId task) {
  entries_.erase(entries_.lower_bound({task, 0}), entries_.lower_bound({task, newest_.at(task)}));
}

bool SlotTable::MustEnd(const Slot& slot, const Entry& entry) const {
  if (entry.killed || entry.over) return true;
  return !entry.admitted.empty() && entry.admitted != slot.id;
}

ProviderAnswer SlotTable::AnswerTo(const ProviderReport& report) {
  ProviderAnswer answer{.sequence = report.sequence};
  answer.final = final_;
  for (const Slot& slot : slots_) {
    const Key key{slot.task, slot.incarnation};
    const auto entry = entries_.find(key);
    if (!IsLive(slot)) {
      if (IsReplaced(key) || IsStranger(key) || !final_.empty()) answer.forget.push_back(slot.id);
    } else if (!final_.empty() || entry == entries_.end() || IsStranger(key) ||
               MustEnd(slot, entry->second)) {
      answer.kill.push_back(slot.id);
    }
  }
  if (!final_.empty()) {
    emptied_ = std::none_of(slots_.begin(), slots_.end(), IsLive);
    return answer;
  }
  for (auto& [key, entry] : entries_) {
    const bool may_be_wanted = entry.wanted && !entry.inherited && !entry.killed && !entry.over &&
                               entry.admitted.empty() && GetSlots(key).empty();
    if (!may_be_wanted) continue;
    entry.asked_of = attempt_;
    wanted_up_to_ = std::max(wanted_up_to_, key.second);
    answer.wanted.push_back(*entry.wanted);
  }
  return answer;
}

ProviderAnswer SlotTable::Take(const ProviderReport& report, double now) {
  if (report.attempt < attempt_) return {.sequence = report.sequence, .superseded = true};
  // Repeated or late: what it would be told, its provider has been told, or must not act on.
  const bool is_new_attempt = report.attempt > attempt_;
  if (!is_new_attempt && report.sequence <= sequence_) return {.sequence = report.sequence};
  attempt_ = report.attempt;
  sequence_ = report.sequence;
  heard_at_ = now;
  slots_ = report.slots;
  gives_ = report.gives;
  SeeSlots();
  SeeEnds(report.ended);
  return AnswerTo(report);
}

Admission SlotTable::Admits(job::TaskId task, int64_t incarnation, const std::string& slot,
                            bool runs) {
  const Key key{task, incarnation};
  if (slot.empty() || IsReplaced(key)) return Admission::kNo;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return runs ? Admission::kYes : Admission::kNotYet;
  Entry& entry = found->second;
  if (!entry.admitted.empty()) return entry.admitted == slot ? Admission::kYes : Admission::kNo;
  if (entry.over) return Admission::kNo;
  if (runs && entry.inherited) {  // an earlier coordinator let it in
    entry.admitted = slot;
    entry.heard = true;
    return Admission::kYes;
  }
  // Whether an earlier coordinator has let another agent in, this one cannot know.
  if (entry.inherited || entry.killed) {
    entry.disrupted = entry.disrupted || !entry.killed;
    entry.killed = true;
    return Admission::kNo;
  }
  const std::span<const Slot* const> slots = GetSlots(key);
  if (slots.size() != 1 || slots[0]->id != slot || !IsLive(*slots[0])) {
    return slots.empty() ? Admission::kNotYet : Admission::kNo;
  }
  if (!kept_.contains(key)) return Admission::kNotYet;
  entry.admitted = slot;
  return Admission::kYes;
}

job::TaskEnd SlotTable::GetEnd(const Entry& entry) {
  job::TaskEnd end{.lost = true, .disrupted = entry.disrupted};
  if (!entry.end) {
    // Nobody asked for its end, so that its provider or coordinator was started again.
    end.disrupted = end.disrupted || !entry.killed;
    if (end.disrupted)
      end.detail = "it had no slot when its coordinator or provider was started again";
    return end;
  }
  const Slot& slot = *entry.end;
  end.disrupted = end.disrupted || slot.disrupted;
  end.detail = StrCat("its slot ", slot.id, slot.host.empty() ? "" : " on ", slot.host, " ended",
                      slot.exit_code == 0 ? "" : StrCat(" with code ", slot.exit_code),
                      slot.detail.empty() ? "" : ": ", slot.detail);
  return end;
}

std::vector<job::TaskObservation> SlotTable::Observe(double now) {
  std::vector<job::TaskObservation> seen;
  for (auto& [key, entry] : entries_) {
    // Its agent was last answered before this coordinator began, and the provider has no slot of
    // it.
    const bool is_silent = entry.inherited && !entry.heard && sequence_ != 0 &&
                           GetSlots(key).empty() && now - began_at_ >= gone_seconds_;
    entry.over = entry.over || is_silent;
    job::TaskObservation each{
        .id = key.first, .incarnation = key.second, .phase = Phase::kStarting};
    if (entry.over) {
      each.phase = Phase::kEnded;
      each.end = GetEnd(entry);
    }
    seen.push_back(each);
  }
  return seen;
}

bool SlotTable::LacksProcess(job::TaskId task, int64_t incarnation) const {
  const Key key{task, incarnation};
  const auto entry = entries_.find(key);
  const bool is_open = entry != entries_.end() && entry->second.wanted && !entry->second.killed &&
                       !entry->second.over && entry->second.admitted.empty();
  if (!is_open) return false;
  const std::span<const Slot* const> slots = GetSlots(key);
  return std::all_of(slots.begin(), slots.end(), [](const Slot* slot) {
    return slot->state == Slot::State::kAsked && slot->process.empty();
  });
}

std::string SlotTable::GetHost(job::TaskId task, int64_t incarnation) const {
  for (const Slot* slot : GetSlots({task, incarnation})) {
    if (IsLive(*slot)) return slot->host;
  }
  return "";
}

}  // namespace muster::launch::slots
