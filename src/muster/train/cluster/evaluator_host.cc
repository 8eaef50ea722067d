#include "muster/train/cluster/evaluator_host.h"

#include <utility>

#include "muster/membership/host.h"
#include "muster/net/transport/acceptor.h"
#include "muster/net/transport/handshake.h"
#include "muster/train/loop/strategy.h"

namespace muster::train {
namespace {

using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::Identity;
using net::transport::Peer;

// At the end, for telling the members that are still connected.
constexpr double kGoodbyeSeconds = 5;

class MembershipHost : public EvaluatorHost {
 public:
  explicit MembershipHost(EvaluatorHostSpec spec) : spec_(std::move(spec)) {}

  absl::Status Start(const net::Token& key, const Clock& clock) {
    MUSTER_ASSIGN_OR_RETURN(auto listener, net::transport::Listener::Listen(spec_.address));
    MUSTER_ASSIGN_OR_RETURN(
        host_, membership::Host::Start({.tasks = {spec_.self, {job::TaskType::kEvaluator, 0}},
                                        .agreement = spec_.agreement,
                                        .lease_seconds = spec_.lease_seconds,
                                        .rendezvous_seconds = spec_.rendezvous_seconds},
                                       clock, spec_.note));
    MUSTER_ASSIGN_OR_RETURN(acceptor_, Acceptor::Start(std::move(listener), OptionsOf(key)));
    return absl::OkStatus();
  }

  absl::Status Leave() override {
    const absl::Status evaluated = host_->AwaitEvaluators(spec_.stop);
    if (IsLeaving(spec_.stop, spec_.leaving)) return absl::CancelledError(kLeftBeforeEvaluation);
    host_->End(kGoodbyeSeconds);
    return TrainedWithoutEvaluator(evaluated, spec_.note);
  }

 private:
  AcceptorOptions OptionsOf(const net::Token& key) {
    AcceptorOptions options = {.key = key};
    options.protection = spec_.protection;
    options.self = [this] {
      return Identity{.job = spec_.job,
                      .role = std::string(job::TypeName(spec_.self.type)),
                      .index = static_cast<uint32_t>(spec_.self.index),
                      .incarnation = static_cast<uint64_t>(spec_.incarnation)};
    };
    options.admit = [name = job::TaskName(spec_.self)](const Peer& peer) {
      return peer.service == membership::kService
                 ? absl::OkStatus()
                 : absl::NotFoundError(StrCat(name, " has no service '", peer.service, "'"));
    };
    options.on_peer = [this](const Peer& peer, std::unique_ptr<net::transport::Stream> stream) {
      host_->Serve(peer, std::move(stream));
    };
    options.on_refused = [this](const absl::Status& why) {
      if (spec_.note) spec_.note(StrCat("refused a connection: ", why.message()));
    };
    return options;
  }

  const EvaluatorHostSpec spec_;
  std::unique_ptr<membership::Host> host_;
  std::unique_ptr<Acceptor> acceptor_;  // calls host_: must end before it
};

}  // namespace

absl::Status TrainedWithoutEvaluator(const absl::Status& evaluated,
                                     const std::function<void(const std::string& text)>& note) {
  if (!absl::IsDeadlineExceeded(evaluated)) return evaluated;
  if (note) note(StrCat("warning: ", evaluated.message()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EvaluatorHost>> HostEvaluator(EvaluatorHostSpec spec,
                                                             const net::Token& key,
                                                             const Clock& clock) {
  auto host = std::make_unique<MembershipHost>(std::move(spec));
  MUSTER_RETURN_IF_ERROR(host->Start(key, clock));
  return host;
}

}  // namespace muster::train
