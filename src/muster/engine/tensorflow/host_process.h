// The owner's side of a TensorFlow host process (host/): starts it, asks it, and starts it again
// when it dies.
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
  std::string program = {};                   // muster-tensorflow; empty: beside this program
  std::string library_folder = {};            // with libtensorflow_cc.so.2: see FindTensorFlow
  std::string saved_model = {};               // folder
  std::string config = {};                    // a serialized ConfigProto
  std::vector<std::string> environment = {};  // of the host, all of it
  double start_seconds = 300;                 // TensorFlow and the model are loaded
  double run_seconds = 600;                   // one call of a function
  // The host's calls compute on one thread: from the first until its owner rests both are on one
  // core that no other owner has, where there is such (process::CoreClaim).
  bool one_core = false;
  int tries = 3;  // so often a host is started for one request before it is given up
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

// The host dies with the thread that started it, with this object, and when this process does. It
// keeps nothing: where it has died, or does not answer in time, another one is started and asked
// the same again. One owner thread.
//
// Errors: UNAVAILABLE for a host that died or hung at all tries, with its last lines;
// RESOURCE_EXHAUSTED where the system killed it, as it does for want of memory; NOT_FOUND and
// FAILED_PRECONDITION for TensorFlow missing or unfit; else TensorFlow's own.
class HostProcess {
 public:
  static absl::StatusOr<std::unique_ptr<HostProcess>> Start(HostSpec spec);
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // Where feeds lie.
  host::SharedSegment& segment() { return *segment_; }
  // The number of the function, for Run.
  absl::StatusOr<uint64_t> Define(const FunctionSpec& function);
  // Feeds in the order of the function's. The fetches, in its order, lie in the segment until the
  // next Run; their places are as long as their shapes say.
  absl::StatusOr<std::span<const host::TensorPlace>> Run(uint64_t function,
                                                         std::span<const host::TensorPlace> feeds);

  // The owner's thread may be on all its cores again, until the next Run. Threads that it starts
  // before it rests are on that of the host, too.
  void Rest() { stay_.reset(); }

  const std::string& version() const { return version_; }  // TensorFlow's
  pid_t pid() const;                                       // -1: none runs
  int starts() const { return starts_; }

 private:
  // What a request came to: an answer of the host's (good or an error), or its loss and why.
  struct Outcome {
    absl::Status status;
    bool lost = false;
    uint64_t reply_bytes = 0;
  };

  enum class Waited { kAnswered, kGone, kLate };

  explicit HostProcess(HostSpec spec) : spec_(std::move(spec)) {}
  absl::Status Spawn();
  // A new host, as far as the last one was: TensorFlow and the model loaded, functions defined.
  Outcome Begin();
  Outcome Prepare();
  Outcome Define(const FunctionSpec& function, uint64_t* number);
  // Tells the host that there is a request, until there is an answer.
  Waited Wait(double seconds);
  // What is in fields_, once.
  Outcome Ask(host::RequestKind kind, double seconds);
  // Until there is an answer: the bytes of its reply.
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
  std::optional<process::CoreClaim::Stay> stay_;  // on core_
  std::string version_;
  uint64_t sequence_ = 0;
  int starts_ = 0;
  host::FieldWriter fields_;
  std::vector<host::TensorPlace> places_;
};

}  // namespace muster::engine::tensorflow
