// PsCluster: the cluster of a training whose weights and slots are on parameter servers (ps/): the
// peers of a replica, and the main loop of a server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/model/model.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/ps/wire/ps_options.h"
#include "muster/train/cluster/evaluator_host.h"
#include "muster/train/cluster/task_context.h"
#include "muster/train/loop/strategy.h"

namespace muster::train {

// The settings of one task, from TF_CONFIG and its flags. Plain data.
struct PsCluster {
  TaskContext context = {};
  ps::PsOptions options = {};
  uint64_t seed = 1;  // of the initial rows of tables that grow
  int replica = 0;    // of a replica task; replica 0 is the chief
  std::vector<net::transport::Address> servers = {};
  std::string chief = "chief-0";  // or master-0
  int threads = 1;                // of a server, which divide the rows of a large request
  // Of a server: where the chief saves. Large tables are saved and loaded there by the servers, if
  // they find the chief's files in it. Null: the chief does that.
  io::FileSystem* files = nullptr;
  std::string model_dir = {};
};

// The peers of a replica; makes no connection yet. `evaluator` is set in the chief if the job has
// an evaluator.
std::unique_ptr<Peers> NewPsPeers(PsCluster cluster, const net::Token& key,
                                  std::unique_ptr<EvaluatorHost> evaluator = nullptr);

// A running parameter server; see ps/server/server.h.
class ParameterServer {
 public:
  virtual ~ParameterServer() = default;
  // Returns whether the chief has reported within `seconds` that training is over.
  virtual bool WaitForEnd(double seconds) = 0;
  // Whether no replica is connected.
  virtual bool alone() = 0;
  // An error once the chief has stopped training before its end.
  virtual absl::Status stopped() = 0;
  // An error if training has ended because a replica did not arrive in time.
  virtual absl::Status failure() = 0;
  // Called when this server was told to end: asks the chief to save. WaitForEnd then returns when
  // may_go().
  virtual void AskForSave() = 0;
  // After AskForSave. may_go(): whether there is no state here that must be saved. is_saved():
  // whether the chief is saving it.
  virtual bool may_go() = 0;
  virtual bool is_saved() = 0;
};

// ALREADY_EXISTS if the server's address is taken. `model` must outlive the result.
absl::StatusOr<std::unique_ptr<ParameterServer>> StartParameterServer(const model::Model& model,
                                                                      const PsCluster& cluster,
                                                                      const net::Token& key);

// Runs a parameter server: returns OK when the chief has ended training, or when no replica is
// connected and context.has_ended says so. When told to stop, the server asks the chief to save the
// server's state, which the chief usually does within one batch. It waits for that while a replica
// is connected, at most kAskSeconds, or kStaySeconds once the save has begun, and returns
// CANCELLED. UNAVAILABLE names a replica that the others need and that did not arrive within
// rendezvous_seconds. ALREADY_EXISTS if the server's address is taken.
inline constexpr double kAskSeconds = 8, kStaySeconds = 20;
absl::Status ServeParameters(const model::Model& model, const PsCluster& cluster,
                             const net::Token& key);

}  // namespace muster::train
