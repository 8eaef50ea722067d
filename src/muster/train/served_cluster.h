// ServedCluster: a training whose weights and slots parameter servers have (ps/): the replicas'
// side of it and a server's own life.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"
#include "muster/model/model.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/tls.h"
#include "muster/ps/variable.h"
#include "muster/train/evaluator_host.h"
#include "muster/train/strategy.h"

namespace muster::train {

// Data: what TF_CONFIG and the flags of a task say.
struct ServedCluster {
  std::string job = {};
  job::TaskId self = {};
  int64_t incarnation = 0;
  std::string agreement = {};  // what all must have the same
  bool synchronous = false;
  int aggregate = 0;              // synchronous: of so many replicas a step is made; 0: of all
  uint64_t seed = 1;              // of initial rows of tables that grow
  int64_t staleness = -1;         // asynchronous, of all tasks (ps/server_state.h); < 0: no bound
  int replica = 0, replicas = 1;  // of a replica; 0 is the chief
  std::vector<net::transport::Address> servers = {};
  net::transport::Protection protection = {};
  double lease_seconds = 10;  // a replica that is silent for longer bounds nobody's staleness
  double rendezvous_seconds = 300;
  const std::atomic<bool>* stop = nullptr;                 // true gives waits up; may be null
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// UNIMPLEMENTED for what a model cannot have with parameter servers: synchronised BatchNorm.
absl::Status CheckServable(const model::ModelSpec& spec);

// What servers and replicas know of the model's variables; points into `model`. CheckServable's
// errors.
absl::StatusOr<ps::Variables> ServedVariables(const model::Model& model, bool synchronous,
                                              uint64_t seed = 1);

// A replica's. Makes no connection yet. `evaluator`: the chief's, where there is an evaluator.
std::unique_ptr<Peers> NewServedPeers(ServedCluster cluster, const net::Token& key,
                                      std::unique_ptr<EvaluatorHost> evaluator = nullptr);

// A parameter server.
class ParameterServer {
 public:
  virtual ~ParameterServer() = default;
  // Whether the chief has said within so long that training is over.
  virtual bool WaitForEnd(double seconds) = 0;
  // Whether no replica is connected.
  virtual bool alone() = 0;
};

// ALREADY_EXISTS where its address is taken. `model` must outlive it.
absl::StatusOr<std::unique_ptr<ParameterServer>> StartParameterServer(const model::Model& model,
                                                                      const ServedCluster& cluster,
                                                                      const net::Token& key);

// A parameter server's life: returns when the chief has ended training. Told to stop, it stays for
// the chief's last save as long as a replica is connected, at most kStaySeconds: then CANCELLED.
// ALREADY_EXISTS where its address is taken.
inline constexpr double kStaySeconds = 20;
absl::Status ServeParameters(const model::Model& model, const ServedCluster& cluster,
                             const net::Token& key);

}  // namespace muster::train
