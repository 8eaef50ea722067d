#include "muster/ps/line.h"

#include <utility>

#include "muster/net/transport/dial.h"
#include "muster/net/transport/local_address.h"
#include "muster/ps/server.h"

namespace muster::ps {
namespace {

using net::transport::Channel;
using net::transport::Interrupt;
using net::transport::Message;
using net::transport::Stream;
using process::Deadline;

// A try to reach a server; between two `stop` is looked at.
constexpr double kTrySeconds = 1;
// The others' batches may take long; the dead are known by their connection.
constexpr double kAnswerSeconds = 3600;

class SocketLine : public Line {
 public:
  SocketLine(std::unique_ptr<Stream> stream, size_t server, std::shared_ptr<Interrupt> interrupt)
      : channel_(std::move(stream), {.peer = StrCat("ps-", server),
                                     .spin_micros = net::transport::DefaultSpinMicros()}),
        interrupt_(std::move(interrupt)) {}
  absl::Status Send(uint16_t type, ConstBytes message) override {
    return channel_.Send(type, message, Deadline::After(kAnswerSeconds), *interrupt_);
  }
  absl::StatusOr<Message> Receive() override {
    return channel_.Receive(Deadline::After(kAnswerSeconds), *interrupt_);
  }

 private:
  Channel channel_;
  const std::shared_ptr<Interrupt> interrupt_;
};

// No later try mends it.
bool IsForGood(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsUnauthenticated(status);
}

absl::StatusOr<std::unique_ptr<Stream>> DialServer(const SocketLineSpec& spec, size_t server,
                                                   Interrupt& interrupt) {
  const Deadline deadline = Deadline::After(kTrySeconds);
  auto local = Dial(LocalServerAddress(spec.key, spec.servers[server]),
                    {.wait_for_listener = false}, deadline, interrupt);
  if (local.ok() || interrupt.is_set()) return local;
  return Dial(spec.servers[server], {.protection = spec.protection}, deadline, interrupt);
}

absl::StatusOr<std::unique_ptr<Stream>> Reach(const SocketLineSpec& spec, size_t server,
                                              Interrupt& interrupt) {
  const Deadline deadline = Deadline::After(spec.rendezvous_seconds);
  while (true) {
    auto stream = DialServer(spec, server, interrupt);
    absl::Status status = stream.status();
    if (stream.ok()) {
      status = DialHandshake(**stream, spec.key, spec.self, kService,
                             Deadline::After(kTrySeconds * 10), interrupt)
                   .status();
      if (status.ok()) return stream;
    }
    if (IsForGood(status)) return Annotate(status, StrCat("ps-", server));
    if (interrupt.is_set()) return interrupt.status();
    if (spec.stop != nullptr && *spec.stop) {
      return absl::CancelledError("stopped while waiting for parameter servers");
    }
    if (deadline.expired()) {
      return absl::UnavailableError(StrCat("waited ", spec.rendezvous_seconds, " s for ps-", server,
                                           ": ", ToStd(status.message())));
    }
  }
}

}  // namespace

net::transport::Address LocalServerAddress(const net::Token& key,
                                           const net::transport::Address& address) {
  return net::transport::LocalAddress(key, StrCat("ps\n", ToString(address)));
}

absl::StatusOr<DialLine> SocketLines(SocketLineSpec spec) {
  std::shared_ptr<Interrupt> interrupt = spec.interrupt;
  if (interrupt == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(interrupt, Interrupt::Create());
  }
  return DialLine([spec = std::move(spec), interrupt = std::move(interrupt)](
                      size_t server) -> absl::StatusOr<std::unique_ptr<Line>> {
    MUSTER_ASSIGN_OR_RETURN(auto stream, Reach(spec, server, *interrupt));
    return std::make_unique<SocketLine>(std::move(stream), server, interrupt);
  });
}

}  // namespace muster::ps
