// What an agent and the coordinator say to each other: JSON over HTTP, POST /v1/agent. The agent
// always says all it knows, the coordinator always all it wants, so that a message lost or repeated
// does no harm. Only orders that the agent says it has seen are not said again: those of a large
// cluster are long.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/progress.h"
#include "muster/formats/json_fields.h"
#include "muster/job/job_status.h"

namespace muster::control {

using formats::Json;

struct AgentReport {
  enum class State { kWaiting, kRunning, kEnded };
  job::TaskId task = {};
  int64_t incarnation = 0;
  int64_t sequence = 0;  // grows with each report; an older one is not taken
  State state = State::kWaiting;
  std::string address = {};  // "host:port" of its task
  int pid = 0;               // of the agent
  int child_pid = 0;         // 0: none
  std::string said = {};     // what it does, for people
  double idle_seconds = 0;   // kRunning: since the last sign of life
  double cpu_seconds = 0;    // of the task and all it started
  int64_t pss_bytes = 0;
  std::optional<int64_t> step = {};          // that the task has written to its step file
  Counts counts = {};                        // the same
  std::optional<job::TaskEnd> end = {};      // kEnded
  std::vector<std::string> last_lines = {};  // kEnded: of its output
  // What it did when it was stopped for want of a sign of life, a line each.
  std::vector<std::string> diagnosis = {};
  int64_t seen = 0;  // the orders it has
  friend bool operator==(const AgentReport&, const AgentReport&) = default;
};

// How the task's process is started.
struct StartOrder {
  std::vector<std::string> command = {};
  std::vector<std::pair<std::string, std::string>> env = {};  // added to the agent's own, in order
  std::string working_directory = {};                         // "": the agent's own
  int64_t memory_bytes = 0;                                   // 0: no limit
  std::string model_dir = {};   // changes in it are signs of life; "": not looked at
  double progress_seconds = 0;  // how long may pass without one; 0: for ever
  friend bool operator==(const StartOrder&, const StartOrder&) = default;
};

struct AgentOrders {
  int64_t version = 0;  // changes with what follows
  std::optional<StartOrder> start = {};
  bool stop = false;             // SIGTERM, then SIGKILL
  std::string stop_reason = {};  // for its log
  bool diagnose = false;         // before it stops the task it says what that does
  double grace_seconds = 0;
  double lease_seconds = 0;  // silence of the coordinator for so long ends the task
  bool end_taken = false;    // its end is written down: the agent may go
  friend bool operator==(const AgentOrders&, const AgentOrders&) = default;
};

// What is no count is passed over, and what is too much.
Counts CountsOf(const Json& json);
Json ToJson(const AgentReport& report);
Json ToJson(const AgentOrders& orders);
// The answer to an agent that has seen the orders of this version: it is heard, and nothing is new.
Json NothingNew(int64_t version, double lease_seconds);
// INVALID_ARGUMENT.
absl::StatusOr<AgentReport> ReportFromJson(const Json& json);
absl::StatusOr<AgentOrders> OrdersFromJson(const Json& json);

}  // namespace muster::control
