#include "muster/train/cluster/evaluator_host.h"

#include <utility>

#include "muster/membership/host.h"
#include "muster/net/transport/acceptor.h"
#include "muster/train/loop/strategy.h"

namespace muster::train {
namespace {

using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::Peer;

// The longest time to tell the connected members that training is over.
constexpr double kGoodbyeSeconds = 5;

class MembershipHost : public EvaluatorHost {
 public:
  explicit MembershipHost(EvaluatorHostSpec spec) : spec_(std::move(spec)) {}

  absl::Status Start(const net::Token& key, const Clock& clock) {
    MUSTER_ASSIGN_OR_RETURN(auto listener, net::transport::Listener::Listen(spec_.address));
    MUSTER_ASSIGN_OR_RETURN(
        host_,
        membership::Host::Start({.tasks = {spec_.context.self, {job::TaskType::kEvaluator, 0}},
                                 .agreement = spec_.context.agreement,
                                 .lease_seconds = spec_.context.lease_seconds,
                                 .rendezvous_seconds = spec_.context.rendezvous_seconds},
                                clock, spec_.context.note));
    AcceptorOptions options = MakeAcceptorOptions(spec_.context, key, [](std::string_view service) {
      return service == membership::kService;
    });
    options.on_peer = [this](const Peer& peer, std::unique_ptr<net::transport::Stream> stream) {
      host_->Serve(peer, std::move(stream));
    };
    MUSTER_ASSIGN_OR_RETURN(acceptor_, Acceptor::Start(std::move(listener), std::move(options)));
    return absl::OkStatus();
  }

  absl::Status Leave() override {
    const absl::Status evaluated = host_->AwaitEvaluators(spec_.context.stop);
    if (IsLeaving(spec_.context.stop, spec_.context.leaving))
      return absl::CancelledError(kLeftBeforeEvaluation);
    host_->End(kGoodbyeSeconds);
    return TrainedWithoutEvaluator(evaluated, spec_.context.note);
  }

 private:
  const EvaluatorHostSpec spec_;
  std::unique_ptr<membership::Host> host_;
  std::unique_ptr<Acceptor> acceptor_;  // calls host_: must end before host_
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
