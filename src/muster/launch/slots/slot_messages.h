// The messages between a coordinator and a provider of slots: JSON over HTTP, POST /v1/slots.
// docs/formats/slots.md has the contract.
//
// A slot is a process that a platform gives (a YARN container, a place in a Spark executor), in
// which a provider starts the agent of one incarnation of a task. The provider always reports all
// slots that it has; the answer always lists all slots that are wanted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/job/job_spec.h"

namespace muster::launch::slots {

using formats::Json;

struct Slot {
  enum class State {
    kAsked,    // the platform was asked for it, or it is being started
    kRunning,  // its process runs
    kEnded,    // its process certainly does not run and never will
  };
  std::string id = {};  // the provider's name for it, never used again
  job::TaskId task = {};
  int64_t incarnation = 0;
  State state = State::kRunning;
  std::string host = {};  // the machine of the slot, for people
  // The platform's name of its process, by which a later attempt may hear of its end
  // (EndedProcess);
  // "": it has none yet.
  std::string process = {};
  int exit_code = 0;        // kEnded; negative: the platform's own code
  bool disrupted = false;   // kEnded: the platform ended it (preemption, a lost node)
  std::string detail = {};  // kEnded: for people
  friend bool operator==(const Slot&, const Slot&) = default;
};

// The end of a process of an earlier attempt, of which the provider does not know the slot.
struct EndedProcess {
  std::string process = {};  // as Slot::process
  int exit_code = 0;         // these as in Slot
  bool disrupted = false;
  std::string detail = {};
  friend bool operator==(const EndedProcess&, const EndedProcess&) = default;
};

struct ProviderReport {
  std::string provider = {};  // "yarn", "spark"
  std::string gives = {};     // what a slot is, for people: "container of YARN's queue root.q"
  int64_t attempt = 0;        // grows with each start of the provider, from 1
  int64_t sequence = 0;       // grows with each report of an attempt, from 1
  std::vector<Slot> slots = {};
  std::vector<EndedProcess> ended = {};
  friend bool operator==(const ProviderReport&, const ProviderReport&) = default;
};

// An incarnation for which there should be a slot and is none.
struct WantedSlot {
  job::TaskId task = {};
  int64_t incarnation = 0;
  int port = 0;  // as in control::StartRequest
  bool port_required = false;
  double lease_seconds = 0;
  double cpus = 0;  // 0: whatever the platform gives
  int64_t memory_bytes = 0;
  int gpus = 0;
  friend bool operator==(const WantedSlot&, const WantedSlot&) = default;
};

struct ProviderAnswer {
  int64_t sequence = 0;     // of the report that this answers
  bool superseded = false;  // a later attempt of the provider reports: end, and touch nothing
  std::vector<WantedSlot> wanted = {};
  std::vector<std::string> kill = {};    // end these slots
  std::vector<std::string> forget = {};  // ended slots that need not be reported again
  // The job has ended ("succeeded", "failed"): once no slot runs, end. "": it has not.
  std::string final = {};
  friend bool operator==(const ProviderAnswer&, const ProviderAnswer&) = default;
};

Json ToJson(const ProviderReport& report);
Json ToJson(const ProviderAnswer& answer);
// INVALID_ARGUMENT for JSON that is not such a message.
absl::StatusOr<ProviderReport> ReportFromJson(const Json& json);
absl::StatusOr<ProviderAnswer> AnswerFromJson(const Json& json);

}  // namespace muster::launch::slots
