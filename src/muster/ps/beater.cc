#include "muster/ps/beater.h"

#include <chrono>
#include <utility>

namespace muster::ps {
namespace {

constexpr auto kBetweenBeats = std::chrono::seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Beater>> Beater::Start(SocketLineSpec spec, int replica) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<net::transport::Interrupt> interrupt,
                          net::transport::Interrupt::Create());
  spec.interrupt = interrupt;
  MUSTER_ASSIGN_OR_RETURN(DialLine dial, SocketLines(std::move(spec)));
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<Beater> beater(new Beater(std::move(dial), replica, std::move(interrupt)));
  beater->thread_ =
      std::jthread([raw = beater.get()](const std::stop_token& stop) { raw->Run(stop); });
  return beater;
}

Beater::~Beater() {
  thread_.request_stop();
  interrupt_->Set(absl::CancelledError("the replica ends"));
}

void Beater::Run(const std::stop_token& stop) {
  std::unique_ptr<Line> line;
  while (!stop.stop_requested()) {
    if (line == nullptr) {
      auto dialed = dial_(0);
      if (dialed.ok()) line = *std::move(dialed);
    }
    if (line != nullptr && !Beat(*line).ok()) line.reset();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, kBetweenBeats, [] { return false; });
  }
}

absl::Status Beater::Beat(Line& line) const {
  Bytes bytes;
  Print(ps::Beat{.replica = static_cast<uint32_t>(replica_)}, &bytes);
  MUSTER_RETURN_IF_ERROR(line.Send(kBeat, bytes));
  return line.Receive().status();
}

}  // namespace muster::ps
