// The owner's side of a TensorFlow host process (host/): starts the host, sends requests to it, and
// starts another one when it is lost.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/host/message.h"
#include "muster/engine/tensorflow/host/shared_segment.h"
#include "muster/engine/tensorflow/output_tail.h"
#include "muster/process/child.h"
#include "muster/process/core_claim.h"
#include "muster/process/descriptor.h"

namespace muster::engine::tensorflow {

struct HostSpec {
  std::string program = {};                   // muster-tensorflow; "": the one beside this program
  std::string library_folder = {};            // contains libtensorflow_cc.so.2; see FindTensorFlow
  std::string saved_model = {};               // a folder
  std::string config = {};                    // a serialized ConfigProto
  std::vector<std::string> environment = {};  // the host's whole environment
  double start_seconds = 300;                 // limit for loading TensorFlow and the model
  double run_seconds = 600;                   // limit for one call of a function
  // The host computes on one thread. From its first call until Rest, the owner's thread and the
  // host are pinned to one core that no other owner has, if one is free (process::CoreClaim).
  bool one_core = false;
  int tries = 3;  // how often a host is started, at first or for one request, before giving up
};

// A function of the SavedModel: tensors of its graph, "operation:k".
struct FunctionSpec {
  struct Feed {
    std::string tensor;
    uint64_t type = 0;  // TensorFlow's DataType
  };
  std::vector<Feed> feeds = {};
  std::vector<std::string> fetches = {};
};

// The host is stopped when the thread that started it ends, with this object, and when this process
// ends. It keeps no state: if it is lost or does not answer in time, another one is started and the
// request is repeated. One owner thread.
//
// Errors: UNAVAILABLE if every host that was tried was lost or hung, with the last one's last
// output lines; RESOURCE_EXHAUSTED if the system killed it, as it does when memory runs out;
// NOT_FOUND and FAILED_PRECONDITION if TensorFlow is missing or unfit; otherwise TensorFlow's own
// errors.
class HostProcess {
 public:
  static absl::StatusOr<std::unique_ptr<HostProcess>> Start(HostSpec spec);
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // The memory in which feeds must lie.
  host::SharedSegment& segment() { return *segment_; }
  // Returns the number of the function, for Run.
  absl::StatusOr<uint64_t> Define(const FunctionSpec& function);
  // `feeds` are in the function's order. The fetches, in the function's order, lie in the segment
  // until the next Run; their lengths fit their shapes.
  absl::StatusOr<std::span<const host::TensorPlace>> Run(uint64_t function,
                                                         std::span<const host::TensorPlace> feeds);

  // Allows the owner's thread on all its cores again, until the next Run. Threads that it starts
  // before Rest are pinned to the host's core, too.
  void Rest() { stay_.reset(); }

  const std::string& version() const { return version_; }  // version of TensorFlow
  pid_t pid() const;                                       // -1: no host runs
  int starts() const { return starts_; }

 private:
  // The outcome of a request: the host's answer (a result or an error), or why the host was lost.
  struct Outcome {
    absl::Status status;
    bool lost = false;
    bool hung = false;  // lost because it did not answer in time
    uint64_t reply_bytes = 0;
  };

  enum class Waited { kAnswered, kGone, kLate };

  explicit HostProcess(HostSpec spec) : spec_(std::move(spec)) {}
  absl::Status Spawn();
  // Brings a new host to the state of the last one: loads TensorFlow and the model, and defines the
  // functions.
  Outcome Begin();
  Outcome Prepare();
  Outcome Define(const FunctionSpec& function, uint64_t* number);
  // Signals the request to the host and waits for the answer.
  Waited Wait(double seconds);
  // Sends the request in fields_ once.
  Outcome Ask(host::RequestKind kind, double seconds);
  // Repeats a Run until there is an answer. Returns the bytes of the reply.
  absl::StatusOr<uint64_t> Insist(uint64_t function, std::span<const host::TensorPlace> feeds);
  Outcome Lose(std::string_view what, bool hung);
  absl::Status ReadPlaces(uint64_t function, uint64_t bytes);

  const HostSpec spec_;
  std::unique_ptr<host::SharedSegment> segment_;
  host::SharedBlock body_, reply_;
  std::vector<FunctionSpec> functions_;
  process::Descriptor socket_, requests_, answers_;
  std::unique_ptr<OutputTail> output_;
  std::unique_ptr<process::Child> child_;
  std::optional<process::CoreClaim> core_;
  std::optional<process::CoreClaim::Stay> stay_;  // the claim on core_
  std::string version_;
  uint64_t sequence_ = 0;
  int starts_ = 0;
  host::FieldWriter fields_;
  std::vector<host::TensorPlace> places_;
};

}  // namespace muster::engine::tensorflow
