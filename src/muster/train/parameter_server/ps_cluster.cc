#include "muster/train/parameter_server/ps_cluster.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "muster/net/transport/acceptor.h"
#include "muster/ps/server/server.h"
#include "muster/ps/wire/server_address.h"
#include "muster/train/parameter_server/ps_step.h"
#include "muster/train/parameter_server/ps_variables.h"
#include "muster/train/weights/variables.h"

namespace muster::train {
namespace {

using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::Peer;

// How often `stop` is read.
constexpr double kLookSeconds = 0.5;
// How long the chief tries to tell a server the end.
constexpr double kTellSeconds = 10;

class PsPeers : public Peers {
 public:
  PsPeers(PsCluster cluster, const net::Token& key, std::unique_ptr<EvaluatorHost> evaluator)
      : cluster_(std::move(cluster)), key_(key), evaluator_(std::move(evaluator)) {}

  bool is_chief() const override { return cluster_.replica == 0; }
  bool has_evaluator() const override { return evaluator_ != nullptr; }
  bool is_leaving() const override {
    return IsLeaving(cluster_.context.stop, cluster_.context.leaving);
  }
  bool all_have_weights() const override { return false; }
  bool IsKeptByServers(const engine::VariableSpec& spec) const override {
    return IsSavedByServers(spec);
  }
  absl::StatusOr<std::unique_ptr<Strategy>> NewStrategy(Session& session) override {
    return PsStep::Create(session, MakeClient(), key_);
  }
  // The servers end last: a chief that is restarted while the last checkpoint is evaluated still
  // needs them.
  absl::Status Leave() override {
    absl::Status left = evaluator_ != nullptr ? evaluator_->Leave() : absl::OkStatus();
    if (absl::IsCancelled(left)) return left;  // the chief's replacement still needs the servers
    const absl::Status told = EndServers(/*stopped=*/false);
    if (told.ok() || absl::IsCancelled(told)) {
      left.Update(told);
      return left;
    }
    // The weights are saved, and a server that comes later reads that the job has ended.
    cluster_.context.Note(
        StrCat("the training is complete and saved, but not all parameter servers "
               "could be told: ",
               told.message()));
    return left;
  }
  // An evaluator waits for the next chief.
  absl::Status LeaveStopped() override { return EndServers(/*stopped=*/true); }

 private:
  // The client needs no variables: it sends only kEnd or kStopAll.
  absl::Status EndServers(bool stopped) const {
    ps::ClientSpec spec = MakeClient();
    spec.rendezvous_seconds = std::min(spec.rendezvous_seconds, kTellSeconds);
    MUSTER_ASSIGN_OR_RETURN(const auto client, ps::Client::Create(std::move(spec), key_, {}));
    MUSTER_RETURN_IF_ERROR(client->Connect().status());
    return client->End(stopped);
  }
  ps::ClientSpec MakeClient() const {
    return {.self = GetIdentity(cluster_.context),
            .replica = cluster_.replica,
            .training = cluster_.options,
            .agreement = cluster_.context.agreement,
            .servers = cluster_.servers,
            .protection = cluster_.context.protection,
            .rendezvous_seconds = cluster_.context.rendezvous_seconds,
            .stall_seconds = cluster_.context.stall_seconds,
            .stop = cluster_.context.stop,
            .leaving = cluster_.context.leaving,
            .note = cluster_.context.note,
            .has_ended = cluster_.context.has_ended};
  }

  const PsCluster cluster_;
  const net::Token key_;
  const std::unique_ptr<EvaluatorHost> evaluator_;  // set in the chief
};

class ServerTask : public ParameterServer {
 public:
  absl::Status Start(const model::Model& model, const PsCluster& cluster, const net::Token& key) {
    const int servers = static_cast<int>(cluster.servers.size());
    MUSTER_ASSIGN_OR_RETURN(variables_,
                            PsVariables(model, cluster.options.synchronous, cluster.seed));
    placement_.emplace(variables_, servers);
    MUSTER_ASSIGN_OR_RETURN(
        server_, ps::Server::Create({.server = cluster.context.self.index,
                                     .servers = servers,
                                     .training = cluster.options,
                                     .lease_seconds = cluster.context.lease_seconds,
                                     .clip = model.spec.clip_gradients,
                                     .agreement = cluster.context.agreement,
                                     .chief = cluster.chief,
                                     .rendezvous_seconds = cluster.context.rendezvous_seconds,
                                     .threads = cluster.threads},
                                    variables_, *placement_, cluster.context.note,
                                    GetStorage(model, cluster)));
    context_ = cluster.context;
    AcceptorOptions options = MakeAcceptorOptions(
        context_, key, [](std::string_view service) { return service == ps::kService; });
    options.on_peer = [this](const Peer& peer, std::unique_ptr<net::transport::Stream> stream) {
      server_->Serve(peer, std::move(stream));
    };
    const auto self = static_cast<size_t>(cluster.context.self.index);
    MUSTER_ASSIGN_OR_RETURN(acceptor_, Acceptor::StartAt(cluster.servers[self], options));
    local_acceptor_ = Acceptor::StartLocally(ps::LocalServerAddress(key, cluster.servers[self]),
                                             std::move(options), cluster.context.note);
    return absl::OkStatus();
  }
  bool WaitForEnd(double seconds) override { return server_->WaitForEnd(seconds); }
  bool alone() override { return server_->alone(); }
  absl::Status stopped() override { return server_->stopped(); }
  absl::Status failure() override { return server_->failure(); }
  void AskForSave() override { server_->AskForSave(); }
  bool may_go() override { return server_->may_go(); }
  bool is_saved() override { return server_->is_saved(); }

 private:
  static ps::TableStorage GetStorage(const model::Model& model, const PsCluster& cluster) {
    const auto initial = [&model, seed = cluster.seed](int variable) {
      const auto index = static_cast<size_t>(variable);
      const auto weights =
          std::make_shared<InitialWeights>(model.engine->variables()[index], seed, index);
      return [weights](std::span<float> piece) { weights->Next(piece); };
    };
    return {.files = cluster.files, .folder = cluster.model_dir, .initial = initial};
  }

  TaskContext context_;
  ps::Variables variables_;
  std::optional<ps::Placement> placement_;
  std::unique_ptr<ps::Server> server_;
  // Both call server_, so that they must end before it.
  std::unique_ptr<Acceptor> acceptor_, local_acceptor_;
};

}  // namespace

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
  const std::function<bool()>& has_ended = cluster.context.has_ended;
  while (server->failure().ok() && !cluster.context.stopped()) {
    if (server->WaitForEnd(kLookSeconds)) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(server->stopped());
    if (server->alone() && has_ended && has_ended()) return absl::OkStatus();
  }
  if (server->failure().ok()) server->AskForSave();
  // A chief that abandoned a batch connects again at once: it has left only if the server is alone
  // twice in succession.
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
