// What members and their host say to each other: plain data, and its form as JSON.
//
// A member is an incarnation of a task. An epoch is a set of members that work together, called a
// view; it ends when one of them is lost, and the next begins when all that are needed have joined
// anew. Numbers of epochs only grow, so that whatever carries an older one is refused: a task that
// slept through its replacement can do no harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/job/job_spec.h"

namespace muster::membership {

using formats::Json;

struct MemberId {
  job::TaskId task = {};
  // Grows with each start of the task; 0 where nobody counts them (a TF_CONFIG set by hand).
  int64_t incarnation = 0;
  friend bool operator==(const MemberId&, const MemberId&) = default;
};
std::string Describe(const MemberId& id);  // "worker-1", "worker-1 (incarnation 3)"

// Which state a member has: those with equal ones have the same bytes. The same step alone does not
// say so, where the others may have done it without the member. Of two, the greater is taken over.
struct StateId {
  int64_t step = -1;  // steps in it: weights, slots and positions; -1: it has none
  // The last epoch in which all had the same before they went on; 0: a checkpoint's, or a new one.
  int64_t epoch = 0;
  friend bool operator==(const StateId&, const StateId&) = default;
  friend bool operator<(const StateId& a, const StateId& b) {
    return std::tie(a.step, a.epoch) < std::tie(b.step, b.epoch);
  }
};

struct Member {
  MemberId id = {};
  std::string address = {};  // where its peers reach it
  int64_t step = -1;         // of its state, as in StateId
  int64_t state_epoch = 0;
  friend bool operator==(const Member&, const Member&) = default;
  StateId state() const { return {.step = step, .epoch = state_epoch}; }
};

// A member wants to be in the next view. The first one, and each time its epoch was broken.
struct Join {
  Member member = {};
  int64_t last_epoch = 0;  // the highest it was in
  // What all members must agree in (spec, data, versions), in words that a message can show.
  std::string agreement = {};
  friend bool operator==(const Join&, const Join&) = default;
};

struct View {
  int64_t epoch = 0;
  // Chief, master, workers by index, then parameter servers and evaluator. A replica's rank is its
  // place.
  std::vector<Member> members = {};
  int replicas = 0;  // members that train: the first ones
  friend bool operator==(const View&, const View&) = default;

  int RankOf(job::TaskId task) const;  // -1: not in it
  // The replica from which those with another state take theirs: the lowest rank of the greatest.
  int source() const;
};

// An epoch has ended, and why: everybody gets the same.
struct Broken {
  int64_t epoch = 0;
  MemberId culprit = {};
  std::string cause = {};  // "closed its connection", "was silent for 10 s", ...
  bool planned = false;    // somebody joins or leaves, nobody failed
  friend bool operator==(const Broken&, const Broken&) = default;
};
// ABORTED "epoch 3: worker-1 closed its connection".
absl::Status ToStatus(const Broken& broken);

// One message either way. Which are set says what it is.
struct Message {
  std::optional<Join> join = {};       // to the host
  std::optional<Broken> failure = {};  // to the host: `culprit` failed in `epoch`, as I see it
  bool leave = false;                  // to the host: for good; to a member: training is over
  bool trained = false;                // to an evaluator: the last checkpoint is written
  std::optional<View> view = {};       // to a member
  std::optional<Broken> broken = {};   // to a member
  std::string refused = {};            // to a member: why it cannot be one; it must not try again
  std::string waiting = {};            // to a member: for whom the next view waits
  friend bool operator==(const Message&, const Message&) = default;
};

std::string Print(const Message& message);
// INVALID_ARGUMENT; sizes and depth are bounded.
absl::StatusOr<Message> Parse(std::string_view text);

}  // namespace muster::membership
