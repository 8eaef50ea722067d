#include "muster/launch/kubernetes/work_queue.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace muster::launch::kubernetes {

// Moves the key to an earlier time, or lets it wait if it does not yet.
void WorkQueue::Schedule(const std::string& key, Entry* entry, double due) {
  if (entry->due >= 0) {
    if (entry->due <= due) return;
    waiting_.erase({entry->due, key});
  }
  entry->due = due;
  if (!entry->taken) {
    waiting_.insert({due, key});
    changed_.notify_one();
  }
}

void WorkQueue::Add(const std::string& key, double seconds) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = entries_.try_emplace(key);
  Entry& entry = found->second;
  if (is_new) entry.due = -1;
  const double due = Now() + seconds - (is_new ? options_.head_start : 0);
  Schedule(key, &entry, std::max({due, entry.not_before, 0.0}));
}

void WorkQueue::Hurry(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = entries_.try_emplace(key);
  Entry& entry = found->second;
  if (is_new) entry.due = -1;
  entry.failures = 0;
  entry.hurried = entry.taken;
  entry.not_before = std::min(entry.not_before, entry.ended + options_.pause);
  Schedule(key, &entry, std::max(Now(), entry.not_before));
}

std::optional<std::string> WorkQueue::Take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return std::nullopt;
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const double wait = waiting_.begin()->first - Now();
    if (wait > 0) {
      changed_.wait_for(lock, std::chrono::duration<double>(wait));
      continue;
    }
    std::string key = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    Entry& entry = entries_[key];
    entry.due = -1;
    entry.taken = true;
    return key;
  }
}

void WorkQueue::Done(const std::string& key, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.taken = false;
  const double now = entry.ended = Now();
  if (std::exchange(entry.hurried, false)) outcome = Outcome::kDone;
  entry.failures = outcome == Outcome::kDone ? 0 : entry.failures + 1;
  entry.not_before = now + options_.pause;
  if (outcome == Outcome::kFailed) {
    const double backoff =
        options_.first_backoff * std::ldexp(1.0, std::min(entry.failures, 30) - 1);
    entry.not_before = now + std::min(options_.longest_backoff, backoff);
  }
  // The time that was added meanwhile, or the next attempt.
  const double added = std::exchange(entry.due, -1);
  if (outcome == Outcome::kFailed) {
    Schedule(key, &entry, entry.not_before);
  } else if (added >= 0) {
    Schedule(key, &entry, std::max(added, entry.not_before));
  }
}

void WorkQueue::Forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.taken || found->second.due >= 0) return;
  entries_.erase(found);
}

void WorkQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

size_t WorkQueue::size() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

}  // namespace muster::launch::kubernetes
