#include "muster/net/transport/acceptor.h"

#include <atomic>
#include <utility>

#include "muster/net/transport/link_watch.h"
#include "muster/net/transport/protect.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using process::Deadline;

constexpr double kYear = 365.0 * 24 * 3600;
// The time after a failure to accept (when no descriptors are left) until the next try.
constexpr double kPauseSeconds = 0.1;

}  // namespace

// A connection that has been accepted and whose handshake is not done.
struct Acceptor::Pending {
  std::unique_ptr<Interrupt> interrupt;
  std::atomic<bool> done = false;
  std::jthread thread;
};

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(std::unique_ptr<Listener> listener,
                                                          AcceptorOptions options) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Interrupt> stop, Interrupt::Create());
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::move(listener), std::move(options), std::move(stop)));
}

Acceptor::Acceptor(std::unique_ptr<Listener> listener, AcceptorOptions options,
                   std::unique_ptr<Interrupt> stop)
    : listener_(std::move(listener)),
      options_(std::move(options)),
      stop_(std::move(stop)),
      thread_([this] { Run(); }) {}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::StartAt(const Address& address,
                                                            AcceptorOptions options) {
  MUSTER_ASSIGN_OR_RETURN(auto listener, Listener::Listen(address));
  return Start(std::move(listener), std::move(options));
}

std::unique_ptr<Acceptor> Acceptor::StartLocally(
    const Address& address, AcceptorOptions options,
    const std::function<void(const std::string& text)>& note) {
  auto started = StartAt(address, std::move(options));
  if (started.ok()) return *std::move(started);
  if (note) {
    note(StrCat("no shared memory with replicas of this machine: ", started.status().message()));
  }
  return nullptr;
}

Acceptor::~Acceptor() {
  stop_->Set(absl::CancelledError("the listener stops"));
  thread_.join();
}

void Acceptor::Run() {
  while (!stop_->is_set()) {
    absl::StatusOr<Accepted> accepted = listener_->Accept(Deadline::After(kYear), *stop_);
    if (stop_->is_set()) break;
    const absl::Status begun = accepted.ok() ? Begin(*std::move(accepted)) : accepted.status();
    if (begun.ok() || absl::IsDeadlineExceeded(begun)) continue;
    Refused(ToString(address()), begun);
    WaitForDescriptor(-1, 0, Deadline::After(kPauseSeconds), *stop_).IgnoreError();
  }
  for (const std::unique_ptr<Pending>& one : pending_) one->interrupt->Set(stop_->status());
  pending_.clear();
}

absl::Status Acceptor::Begin(Accepted accepted) {
  MakePlace();
  auto pending = std::make_unique<Pending>();
  MUSTER_ASSIGN_OR_RETURN(pending->interrupt, Interrupt::Create());
  Pending* const one = pending.get();
  pending_.push_back(std::move(pending));
  one->thread = std::jthread([this, one, connection = std::move(accepted)]() mutable {
    Greet(std::move(connection), *one->interrupt);
    one->done.store(true, std::memory_order_release);
  });
  return absl::OkStatus();
}

void Acceptor::MakePlace() {
  pending_.remove_if([](const std::unique_ptr<Pending>& one) {
    return one->done.load(std::memory_order_acquire);
  });
  while (pending_.size() >= static_cast<size_t>(options_.max_pending)) {
    pending_.front()->interrupt->Set(absl::ResourceExhaustedError(
        StrCat("more than ", options_.max_pending,
               " connections have not proven who they are: ", "the oldest is closed")));
    pending_.pop_front();
  }
}

void Acceptor::Greet(Accepted accepted, const Interrupt& interrupt) {
  SetStallTimeout(accepted.socket.get(), options_.stall_seconds);
  const Deadline deadline = Deadline::After(options_.handshake_seconds);
  const std::string name = accepted.peer;
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      listener_->Open(std::move(accepted), deadline, interrupt);
  if (stream.ok() && listener_->address().kind == Address::Kind::kTcp) {
    stream = ProtectAccepted(*std::move(stream), options_.protection, deadline, interrupt);
  }
  absl::Status status = stream.status();
  if (stream.ok()) {
    absl::StatusOr<Peer> peer = AcceptHandshake(**stream, options_.key, options_.self(),
                                                options_.admit, deadline, interrupt);
    status = peer.status();
    if (peer.ok()) options_.on_peer(*std::move(peer), *std::move(stream));
  }
  if (!status.ok()) Refused(name, status);
}

void Acceptor::Refused(const std::string& peer, const absl::Status& why) {
  if (!options_.on_refused) return;
  if (const std::optional<absl::Status> said = refusals_.Count(peer, why)) {
    options_.on_refused(*said);
  }
}

}  // namespace muster::net::transport
