// The protocol between an agent and the coordinator: JSON over HTTP, POST /v1/agent. Each report
// holds everything the agent knows and each answer all orders, so that a lost or repeated message
// does no harm. Only orders that the agent says it has seen are not repeated, since those of a
// large cluster are long.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/life_signs.h"
#include "muster/formats/json_fields.h"
#include "muster/job/reconcile.h"

namespace muster::control {

using formats::Json;

struct AgentReport {
  enum class State { kWaiting, kRunning, kEnded };
  job::TaskId task = {};
  int64_t incarnation = 0;
  int64_t sequence = 0;  // grows with each report; older reports are ignored
  State state = State::kWaiting;
  std::string address = {};  // "host:port" of its task
  int pid = 0;               // of the agent
  int child_pid = 0;         // 0: none
  std::string said = {};     // what the agent is doing, for people
  double idle_seconds = 0;   // kRunning: since the task's last sign of life
  double cpu_seconds = 0;    // of the task and all processes it started
  int64_t pss_bytes = 0;
  bool saved = false;                           // a checkpoint appeared in the model folder
  std::optional<job::EvaluatorWork> work = {};  // kRunning: of an evaluator
  std::optional<int64_t> step = {};             // written by the task to its step file
  Counts counts = {};                           // from the step file, too
  // The newest checkpoint of the model folder when the task began, once it has vanished from there.
  std::optional<int64_t> lost_step = {};
  std::optional<job::TaskEnd> end = {};      // kEnded
  std::vector<std::string> last_lines = {};  // kEnded: of the task's output
  // What the task was doing when it was stopped for lack of a sign of life, one line each.
  std::vector<std::string> diagnosis = {};
  int64_t seen = 0;       // the version of the orders it has
  std::string slot = {};  // where a provider started it (launch/slots); "": there are no slots
  friend bool operator==(const AgentReport&, const AgentReport&) = default;
};

// How the task's process is started.
struct StartOrder {
  std::vector<std::string> command = {};
  std::vector<std::pair<std::string, std::string>> env = {};  // added to the agent's own, in order
  std::string working_directory = {};                         // "": the agent's own
  int64_t memory_bytes = 0;                                   // 0: no limit
  std::string model_dir = {};   // changes in it are signs of life; "": not watched
  double progress_seconds = 0;  // the longest time without a sign of life; 0: unlimited
  friend bool operator==(const StartOrder&, const StartOrder&) = default;
};

struct AgentOrders {
  int64_t version = 0;  // changes with the members below
  std::optional<StartOrder> start = {};
  bool pause = false;            // the task is paused until this is false again (Ctrl-Z)
  bool stop = false;             // SIGTERM, then SIGKILL
  std::string stop_reason = {};  // for the agent's log
  bool diagnose = false;         // report what the task is doing before stopping it
  double grace_seconds = 0;
  double lease_seconds = 0;  // the task ends when the coordinator is silent this long
  bool end_taken = false;    // its end is recorded: the agent may exit
  double held_seconds = 0;   // how long the answer was held back
  friend bool operator==(const AgentOrders&, const AgentOrders&) = default;
};

// Members that are not counts, and excess ones, are skipped.
Counts ParseCounts(const Json& json);
Json ToJson(const AgentReport& report);
Json ToJson(const AgentOrders& orders);
// The answer to an agent that has seen the orders of this version, after it was held back for
// `held_seconds`: the report arrived, and there are no new orders.
Json NothingNew(int64_t version, double lease_seconds, double held_seconds);
// INVALID_ARGUMENT for JSON that is not such a message.
absl::StatusOr<AgentReport> ReportFromJson(const Json& json);
absl::StatusOr<AgentOrders> OrdersFromJson(const Json& json);

}  // namespace muster::control
