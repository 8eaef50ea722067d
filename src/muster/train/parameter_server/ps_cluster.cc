#include "muster/train/parameter_server/ps_cluster.h"

#include <optional>
#include <utility>

#include "muster/net/transport/acceptor.h"
#include "muster/ps/server.h"
#include "muster/train/parameter_server/ps_step.h"
#include "muster/train/weights/dynamic_tables.h"

namespace muster::train {
namespace {

using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::Identity;
using net::transport::Peer;

// How often `stop` is read.
constexpr double kLookSeconds = 0.5;

Identity IdentityOf(const PsCluster& cluster) {
  return {.job = cluster.job,
          .role = std::string(job::TypeName(cluster.self.type)),
          .index = static_cast<uint32_t>(cluster.self.index),
          .incarnation = static_cast<uint64_t>(cluster.incarnation)};
}

class PsPeers : public Peers {
 public:
  PsPeers(PsCluster cluster, const net::Token& key, std::unique_ptr<EvaluatorHost> evaluator)
      : cluster_(std::move(cluster)), key_(key), evaluator_(std::move(evaluator)) {}

  bool is_chief() const override { return cluster_.replica == 0; }
  bool has_evaluator() const override { return evaluator_ != nullptr; }
  bool is_leaving() const override { return IsLeaving(cluster_.stop, cluster_.leaving); }
  bool all_have_weights() const override { return false; }
  absl::StatusOr<std::unique_ptr<Strategy>> NewStrategy(Session& session) override {
    return PsStep::Create(session, {.client = ClientOf(), .note = cluster_.note}, key_);
  }
  // The servers end last: a chief that is started again while the last checkpoint is evaluated
  // still needs them.
  absl::Status Leave() override {
    absl::Status left = evaluator_ != nullptr ? evaluator_->Leave() : absl::OkStatus();
    if (absl::IsCancelled(left)) return left;  // the chief's replacement still needs the servers
    left.Update(EndServers());
    return left;
  }

 private:
  // Needs no variables: it sends only kEnd.
  absl::Status EndServers() const {
    MUSTER_ASSIGN_OR_RETURN(const auto client, ps::Client::Create(ClientOf(), key_, {}));
    MUSTER_RETURN_IF_ERROR(client->Connect().status());
    return client->End();
  }
  ps::ClientSpec ClientOf() const {
    return {.self = IdentityOf(cluster_),
            .replica = cluster_.replica,
            .replicas = cluster_.replicas,
            .synchronous = cluster_.synchronous,
            .aggregate = cluster_.aggregate,
            .staleness = cluster_.staleness,
            .agreement = cluster_.agreement,
            .servers = cluster_.servers,
            .protection = cluster_.protection,
            .rendezvous_seconds = cluster_.rendezvous_seconds,
            .stall_seconds = cluster_.stall_seconds,
            .stop = cluster_.stop,
            .leaving = cluster_.leaving,
            .note = cluster_.note};
  }

  const PsCluster cluster_;
  const net::Token key_;
  const std::unique_ptr<EvaluatorHost> evaluator_;  // set in the chief
};

AcceptorOptions AcceptorOptionsOf(const PsCluster& cluster, const net::Token& key,
                                  ps::Server& server) {
  AcceptorOptions options = {.key = key};
  options.protection = cluster.protection;
  options.stall_seconds = cluster.stall_seconds;
  options.self = [self = IdentityOf(cluster)] { return self; };
  options.admit = [name = job::TaskName(cluster.self)](const Peer& peer) {
    return peer.service == ps::kService
               ? absl::OkStatus()
               : absl::NotFoundError(StrCat(name, " has no service '", peer.service, "'"));
  };
  options.on_peer = [&server](const Peer& peer, std::unique_ptr<net::transport::Stream> stream) {
    server.Serve(peer, std::move(stream));
  };
  options.on_refused = [note = cluster.note](const absl::Status& why) {
    if (note) note(StrCat("refused a connection: ", why.message()));
  };
  return options;
}

class ServerTask : public ParameterServer {
 public:
  absl::Status Start(const model::Model& model, const PsCluster& cluster, const net::Token& key) {
    const int servers = static_cast<int>(cluster.servers.size());
    MUSTER_ASSIGN_OR_RETURN(variables_, PsVariables(model, cluster.synchronous, cluster.seed));
    placement_.emplace(variables_, servers);
    MUSTER_ASSIGN_OR_RETURN(server_,
                            ps::Server::Create({.server = cluster.self.index,
                                                .servers = servers,
                                                .replicas = cluster.replicas,
                                                .synchronous = cluster.synchronous,
                                                .aggregate = cluster.aggregate,
                                                .staleness = cluster.staleness,
                                                .lease_seconds = cluster.lease_seconds,
                                                .clip = model.spec.clip_gradients,
                                                .agreement = cluster.agreement,
                                                .chief = cluster.chief,
                                                .rendezvous_seconds = cluster.rendezvous_seconds},
                                               variables_, *placement_, cluster.note));
    const AcceptorOptions options = AcceptorOptionsOf(cluster, key, *server_);
    const auto self = static_cast<size_t>(cluster.self.index);
    MUSTER_ASSIGN_OR_RETURN(acceptor_, Acceptor::StartAt(cluster.servers[self], options));
    local_acceptor_ = Acceptor::StartLocally(ps::LocalServerAddress(key, cluster.servers[self]),
                                             options, cluster.note);
    return absl::OkStatus();
  }
  bool WaitForEnd(double seconds) override { return server_->WaitForEnd(seconds); }
  bool alone() override { return server_->alone(); }
  absl::Status failure() override { return server_->failure(); }
  void AskForSave() override { server_->AskForSave(); }
  bool may_go() override { return server_->may_go(); }
  bool is_saved() override { return server_->is_saved(); }

 private:
  ps::Variables variables_;
  std::optional<ps::Placement> placement_;
  std::unique_ptr<ps::Server> server_;
  std::unique_ptr<Acceptor> acceptor_, local_acceptor_;  // both call server_: must end before it
};

}  // namespace

absl::Status CheckServable(const model::ModelSpec& spec) {
  if (spec.dnn && spec.dnn->synchronized_batch_norm) {
    return absl::UnimplementedError(
        "synchronized_batch_norm with parameter servers: their workers do not wait for each other "
        "in the midst of a step; train by --strategy allreduce, or leave it out");
  }
  const char* const function = spec.exported == nullptr          ? nullptr
                               : spec.exported->applies          ? "optimizer"
                               : spec.exported->rate_is_function ? "learning rate"
                                                                 : nullptr;
  if (function != nullptr) {
    return absl::UnimplementedError(StrCat(
        spec.exported->folder, ": the ", function, " of ", spec.exported->optimizer_name,
        " is a function that TensorFlow computes, which parameter servers have not: train by "
        "--strategy allreduce (--workers N without --ps), or export with ",
        spec.exported->applies
            ? "Adagrad, Adam, AdamW, Ftrl, RMSprop or SGD and no constraints on weights"
            : "a number or one of Keras's schedules"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ps::Variables> PsVariables(const model::Model& model, bool synchronous,
                                          uint64_t seed) {
  MUSTER_RETURN_IF_ERROR(CheckServable(model.spec));
  using Clip = optim::ClipSpec::Kind;
  const optim::ClipSpec& clip = model.spec.clip_gradients;
  ps::Variables variables;
  for (const engine::VariableSpec& spec : model.engine->variables()) {
    ps::Variable& variable = variables.emplace_back();
    variable.name = spec.name;
    variable.rows = 1;
    variable.cols = spec.elements();
    variable.momentum = spec.momentum;
    if (spec.kind == engine::VariableKind::kState) {
      variable.kind = ps::Variable::Kind::kState;
      continue;
    }
    variable.optimizer = model.optimizers[static_cast<size_t>(spec.group)].get();
    const bool is_table = spec.kind == engine::VariableKind::kTable;
    // Asynchronous workers clip their own gradients, before they push them.
    if (synchronous && clip.kind == Clip::kValue && !(is_table && clip.tables_are_cut)) {
      variable.clip = static_cast<float>(clip.limit);
    }
    if (!is_table) continue;
    variable.kind = ps::Variable::Kind::kTable;
    variable.rows = spec.shape[0];
    variable.cols = spec.shape[1];
    if (spec.growth) variable.growth = GrowthOf(spec, seed, variables.size() - 1);
  }
  return variables;
}

std::unique_ptr<Peers> NewPsPeers(PsCluster cluster, const net::Token& key,
                                  std::unique_ptr<EvaluatorHost> evaluator) {
  return std::make_unique<PsPeers>(std::move(cluster), key, std::move(evaluator));
}

absl::StatusOr<std::unique_ptr<ParameterServer>> StartParameterServer(const model::Model& model,
                                                                      const PsCluster& cluster,
                                                                      const net::Token& key) {
  auto task = std::make_unique<ServerTask>();
  MUSTER_RETURN_IF_ERROR(task->Start(model, cluster, key));
  return task;
}

absl::Status ServeParameters(const model::Model& model, const PsCluster& cluster,
                             const net::Token& key) {
  MUSTER_ASSIGN_OR_RETURN(const auto server, StartParameterServer(model, cluster, key));
  while (server->failure().ok() && (cluster.stop == nullptr || !*cluster.stop)) {
    if (server->WaitForEnd(kLookSeconds)) return absl::OkStatus();
  }
  if (server->failure().ok()) server->AskForSave();
  // A chief that gave up a batch connects again at once: only if the server is alone twice in
  // succession has the chief left.
  bool alone = false;
  for (double stayed = 0; !server->may_go() && stayed < kStaySeconds; stayed += kLookSeconds) {
    if (stayed >= kAskSeconds && !server->is_saved()) break;
    const bool was_alone = std::exchange(alone, server->alone());
    if (was_alone && alone) break;
    if (server->WaitForEnd(kLookSeconds)) return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(server->failure());
  return absl::CancelledError("stopped; the chief has not said that training is over");
}

}  // namespace muster::train
