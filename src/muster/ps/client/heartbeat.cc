#include "muster/ps/client/heartbeat.h"

#include <chrono>
#include <utility>

namespace muster::ps {
namespace {

constexpr auto kBetweenBeats = std::chrono::seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<HeartbeatSender>> HeartbeatSender::Start(ServerConnectionSpec spec,
                                                                        int replica) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<net::transport::Interrupt> interrupt,
                          net::transport::Interrupt::Create());
  spec.interrupt = interrupt;
  spec.note = {};  // the client's other connections report waits and ends
  spec.has_ended = {};
  MUSTER_ASSIGN_OR_RETURN(ServerDialer dial, MakeServerDialer(std::move(spec)));
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<HeartbeatSender> heartbeat(
      new HeartbeatSender(std::move(dial), replica, std::move(interrupt)));
  heartbeat->thread_ =
      std::jthread([raw = heartbeat.get()](const std::stop_token& stop) { raw->Run(stop); });
  return heartbeat;
}

HeartbeatSender::~HeartbeatSender() {
  thread_.request_stop();
  interrupt_->Set(absl::CancelledError("the replica ends"));
}

void HeartbeatSender::Run(const std::stop_token& stop) {
  std::unique_ptr<ServerConnection> connection;
  while (!stop.stop_requested()) {
    if (connection == nullptr) {
      auto dialed = dial_(0);
      if (dialed.ok()) connection = *std::move(dialed);
    }
    if (connection != nullptr && !Beat(*connection).ok()) connection.reset();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, kBetweenBeats, [] { return false; });
  }
}

absl::Status HeartbeatSender::Beat(ServerConnection& connection) const {
  Bytes bytes;
  Print(ps::Beat{.replica = static_cast<uint32_t>(replica_)}, &bytes);
  MUSTER_RETURN_IF_ERROR(connection.Send(kBeat, bytes));
  return connection.Receive().status();
}

}  // namespace muster::ps
