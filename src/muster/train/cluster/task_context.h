// TaskContext: identifies a task of a training, and says how it communicates with the other tasks
// and waits for them. All-reduce and parameter servers both use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "muster/job/job_spec.h"
#include "muster/net/token.h"
#include "muster/net/transport/acceptor.h"
#include "muster/net/transport/handshake.h"
#include "muster/net/transport/tls.h"

namespace muster::train {

// Plain data.
struct TaskContext {
  std::string job = {};
  job::TaskId self = {};
  int64_t incarnation = 0;     // each start of a task has a greater one than the starts before
  std::string agreement = {};  // the settings that must be the same in all tasks (base/agreement.h)
  net::transport::Protection protection = {};
  double lease_seconds = 10;        // a task that is silent for longer is lost
  double rendezvous_seconds = 300;  // longest wait for a task that others need; infinity: no limit
  int stall_seconds = 0;            // of connections (net/transport/link_watch.h)
  const std::atomic<bool>* stop = nullptr;  // true ends waits for others; null: nothing does
  // If true as well as `stop`: only this task must end; the others continue or wait for its
  // replacement. Null: a stop is meant for all tasks.
  const std::atomic<bool>* leaving = nullptr;
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
  // Asked while the others are away: true ends waits for them, since they have ended the job
  // (FinishedJobWatch). Thread-safe; may be empty.
  std::function<bool()> has_ended = {};

  bool stopped() const { return stop != nullptr && *stop; }
  // Passes `text` to `note`, if that is set.
  void Note(const std::string& text) const {
    if (note) note(text);
  }
};

// The identity with which the task introduces itself to other tasks.
net::transport::Identity GetIdentity(const TaskContext& context, int64_t generation = 0);

// The options of an acceptor of this task, which admits peers that ask for a service for which
// `offers` returns true, and notes the peers that it refuses. The caller adds on_peer. `context`
// must outlive the acceptor.
net::transport::AcceptorOptions MakeAcceptorOptions(
    const TaskContext& context, const net::Token& key,
    std::function<bool(std::string_view service)> offers);

}  // namespace muster::train
