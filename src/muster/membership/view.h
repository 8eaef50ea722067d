// The messages between members and their host: plain data, and its form as JSON.
//
// A member is an incarnation of a task. A view is the set of members that work together during one
// generation. A generation ends when one of them is lost, and the next begins when all needed
// members have joined again. Generation numbers only grow, and messages of an older generation are
// refused: a task that was suspended while it was replaced can do no harm.
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
  // Grows with each start of the task; 0 if starts are not counted.
  int64_t incarnation = 0;
  friend bool operator==(const MemberId&, const MemberId&) = default;
  friend bool operator<(const MemberId& a, const MemberId& b) {
    return std::tie(a.task, a.incarnation) < std::tie(b.task, b.incarnation);
  }
};
std::string Describe(const MemberId& id);  // "worker-1", "worker-1 (incarnation 3)"

// Identifies a member's state: members with equal StateIds have the same bytes. An equal step alone
// does not suffice: the others may have done that step without the member. Of two states, the
// greater one is taken over.
struct StateId {
  int64_t step = -1;  // the global step of weights, slots and positions; -1: there is no state
  // The last generation in which all members had the same state before they continued; 0: the state
  // is that of a checkpoint, or a new one.
  int64_t generation = 0;
  friend bool operator==(const StateId&, const StateId&) = default;
  friend bool operator<(const StateId& a, const StateId& b) {
    return std::tie(a.step, a.generation) < std::tie(b.step, b.generation);
  }
};

struct Member {
  MemberId id = {};
  std::string address = {};  // where its peers reach it
  int64_t step = -1;         // of its state, as in StateId
  int64_t state_generation = 0;
  friend bool operator==(const Member&, const Member&) = default;
  StateId state() const { return {.step = step, .generation = state_generation}; }
};

// Asks to be in the next view. A member sends it when it starts, and again each time its generation
// has broken.
struct Join {
  Member member = {};
  int64_t last_generation = 0;  // the highest generation that the member was in
  int64_t known_view = 0;       // the generation of the last view that it has got; 0: none
  // The settings that must be the same in all members (spec, data, versions), as text for people.
  std::string agreement = {};
  friend bool operator==(const Join&, const Join&) = default;
};

inline constexpr size_t kMaxMembers = 100'000;

struct View {
  int64_t generation = 0;
  // Chief or master, workers by index, then parameter servers; evaluators are in no view. A
  // replica's rank is its index in this list.
  std::vector<Member> members = {};
  int replicas = 0;  // members that train: the first ones
  friend bool operator==(const View&, const View&) = default;

  int GetRank(job::TaskId task) const;  // -1: not in the view
  // The rank of the replica from which replicas with another state take over its state: the lowest
  // rank of those with the greatest state.
  int source() const;
};

// What differs from an earlier view, for a member that has that one (view_change.h).
struct ViewChange {
  int64_t generation = 0;
  int64_t base = 0;  // the generation of the earlier view
  int replicas = 0;
  std::vector<job::TaskId> gone = {};
  // Those that are new, or have another incarnation or address, without their states.
  std::vector<Member> members = {};
  // The states of all members of the new view, in its order: so many in a row have this one.
  struct Run {
    int64_t members = 0;
    StateId state = {};
    friend bool operator==(const Run&, const Run&) = default;
  };
  std::vector<Run> states = {};
  friend bool operator==(const ViewChange&, const ViewChange&) = default;
};

// Says that a generation has ended, and why. Every member of the generation gets the same message.
struct Broken {
  int64_t generation = 0;
  MemberId culprit = {};
  std::string cause = {};  // "closed its connection", "was silent for 10 s", ...
  bool planned = false;    // true: a member joins; the generation's members end their step first
  // In a message to the host: the member that could not reach the culprit, if not the sender.
  std::optional<MemberId> seen_by = {};
  friend bool operator==(const Broken&, const Broken&) = default;
};
// ABORTED "generation 3: worker-1 closed its connection".
absl::Status ToStatus(const Broken& broken);

// A message in either direction. The fields that are set say what it is.
struct Message {
  std::optional<Join> join = {};       // to the host
  std::optional<Broken> failure = {};  // to the host: the sender saw `culprit` fail in `generation`
  bool leave = false;                  // to host: leaving permanently; to member: training is over
  bool away = false;                   // to the host: this incarnation ends; another one may follow
  bool trained = false;                // to an evaluator: the last checkpoint is written
  std::optional<View> view = {};       // to a member
  std::optional<ViewChange> change = {};  // to a member, instead of the view
  std::optional<Broken> broken = {};      // to a member
  std::string refused = {};  // to a member: why it cannot be one; it must not try again
  std::string waiting = {};  // to a member: the tasks that the next view waits for
  friend bool operator==(const Message&, const Message&) = default;
};

std::string Print(const Message& message);
// INVALID_ARGUMENT for text that is not a message; sizes and depth are bounded.
absl::StatusOr<Message> Parse(std::string_view text);

}  // namespace muster::membership
