#include "muster/ps/client/server_connection.h"

#include <utility>

#include "muster/net/transport/dial.h"
#include "muster/ps/wire/server_address.h"

namespace muster::ps {
namespace {

using net::transport::Channel;
using net::transport::Interrupt;
using net::transport::Message;
using net::transport::Stream;
using process::Deadline;

// The longest time of one attempt to reach a server; `stop` is read between attempts.
constexpr double kTrySeconds = 1;
// The lease of a server, which sends a keep-alive every second while an answer waits for other
// replicas. The longest message, one gigabyte, may also take this long.
constexpr double kLeaseSeconds = 60;

class SocketConnection : public ServerConnection {
 public:
  SocketConnection(std::unique_ptr<Stream> stream, size_t server,
                   std::shared_ptr<Interrupt> interrupt)
      : channel_(std::move(stream), {.peer = StrCat("ps-", server),
                                     .spin_micros = net::transport::DefaultSpinMicros()}),
        interrupt_(std::move(interrupt)) {}
  absl::Status Send(uint16_t type, ConstBytes message) override {
    return channel_.Send(type, message, Deadline::After(kLeaseSeconds), *interrupt_);
  }
  absl::StatusOr<Message> Receive() override {
    return channel_.Receive(Deadline::After(kLeaseSeconds), *interrupt_);
  }

 private:
  Channel channel_;
  const std::shared_ptr<Interrupt> interrupt_;
};

// Whether a later attempt would fail too.
bool IsForGood(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsUnauthenticated(status);
}

absl::StatusOr<std::unique_ptr<Stream>> DialServer(const ServerConnectionSpec& spec, size_t server,
                                                   Interrupt& interrupt) {
  const Deadline deadline = Deadline::After(kTrySeconds);
  auto local = Dial(LocalServerAddress(spec.key, spec.servers[server]),
                    {.wait_for_listener = false}, deadline, interrupt);
  if (local.ok() || interrupt.is_set()) return local;
  return Dial(spec.servers[server],
              {.protection = spec.protection, .socket = {.stall_seconds = spec.stall_seconds}},
              deadline, interrupt);
}

absl::StatusOr<std::unique_ptr<Stream>> Reach(const ServerConnectionSpec& spec, size_t server,
                                              Interrupt& interrupt) {
  const Deadline deadline = Deadline::After(spec.rendezvous_seconds);
  for (bool said = false;; said = true) {
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
    if (spec.has_ended && spec.has_ended()) {
      return absl::CancelledError("training has ended while this replica was away");
    }
    if (!said && spec.note) {
      spec.note(StrCat("waiting for ps-", server, ": ", ToStd(status.message())));
    }
    if (deadline.expired()) {
      return absl::UnavailableError(StrCat("waited ", spec.rendezvous_seconds, " s for ps-", server,
                                           ": ", ToStd(status.message())));
    }
  }
}

}  // namespace

absl::StatusOr<ServerDialer> MakeServerDialer(ServerConnectionSpec spec) {
  std::shared_ptr<Interrupt> interrupt = spec.interrupt;
  if (interrupt == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(interrupt, Interrupt::Create());
  }
  return ServerDialer([spec = std::move(spec), interrupt = std::move(interrupt)](
                          size_t server) -> absl::StatusOr<std::unique_ptr<ServerConnection>> {
    MUSTER_ASSIGN_OR_RETURN(auto stream, Reach(spec, server, *interrupt));
    return std::make_unique<SocketConnection>(std::move(stream), server, interrupt);
  });
}

}  // namespace muster::ps
