#include "muster/ps/server.h"

#include <chrono>
#include <utility>

namespace muster::ps {
namespace {

using net::transport::Channel;
using net::transport::ChannelOptions;
using net::transport::Interrupt;
using net::transport::Message;
using process::Deadline;

constexpr double kSendSeconds = 60;
constexpr double kTellSeconds = 0.5;
// A worker between two requests computes, or evaluates; a dead one is known by its connection.
constexpr double kSilenceSeconds = 24 * 3600;
// Waits for the state of others end after so long with what there is, so that the asking side can
// look at its own stop.
constexpr auto kWaitAtMost = std::chrono::seconds(1);

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Create(ServerSpec spec,
                                                       std::span<const Variable> variables,
                                                       const Placement& placement) {
  MUSTER_ASSIGN_OR_RETURN(auto stop, Interrupt::Create());
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<Server>(
      new Server(std::move(spec), variables, placement, std::move(stop)));
}

Server::Server(ServerSpec spec, std::span<const Variable> variables, const Placement& placement,
               std::unique_ptr<Interrupt> stop)
    : stop_(std::move(stop)), state_(std::move(spec), variables, placement) {}

Server::~Server() {
  stop_->Set(absl::UnavailableError("the parameter server ends"));
  std::list<std::jthread> threads;
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    threads.swap(threads_);
  }
}

void Server::Serve(const net::transport::Peer& peer,
                   std::unique_ptr<net::transport::Stream> stream) {
  auto channel = std::make_shared<Channel>(
      std::move(stream), ChannelOptions{.peer = net::transport::ShortName(peer.identity)});
  const auto incarnation = static_cast<int64_t>(peer.identity.incarnation);
  const std::lock_guard lock(mutex_);
  const Connection id = ++last_connection_;
  threads_.emplace_back([this, id, incarnation, channel] { Converse(id, incarnation, *channel); });
}

void Server::Converse(Connection id, int64_t incarnation, Channel& channel) {
  Request request(id, incarnation);
  while (true) {
    const auto message = channel.Receive(Deadline::After(kSilenceSeconds), *stop_);
    if (!message.ok()) {
      // Whose message came damaged hears why; who is gone hears nothing.
      if (absl::IsDataLoss(message.status())) {
        channel.SendFailure(message.status(), Deadline::After(kTellSeconds)).IgnoreError();
      }
      break;
    }
    const absl::Status status = Handle(*message, &request);
    if (stop_->is_set()) break;
    const uint16_t type = request.Print(status);
    if (!channel.Send(type, request.answer(), Deadline::After(kSendSeconds), *stop_).ok()) break;
  }
  channel.Close();
  const std::lock_guard lock(mutex_);
  state_.OnClosed(id);
  changed_.notify_all();
}

absl::Status Server::Handle(const Message& message, Request* request) {
  MUSTER_RETURN_IF_ERROR(request->Read(message));
  const auto until = std::chrono::steady_clock::now() + kWaitAtMost;
  std::unique_lock lock(mutex_);
  state_.SetTime(Now());
  MUSTER_RETURN_IF_ERROR(request->Take(state_));
  changed_.notify_all();
  while (true) {
    state_.SetTime(Now());
    MUSTER_ASSIGN_OR_RETURN(const bool answered, request->Answer(state_));
    if (answered) return absl::OkStatus();
    if (stop_->is_set()) return stop_->status();
    if (!request->is_wait()) {
      changed_.wait_for(lock, kWaitAtMost);
    } else if (changed_.wait_until(lock, until) == std::cv_status::timeout) {
      return absl::DeadlineExceededError("nothing changed");
    }
  }
}

bool Server::WaitForEnd(double seconds) {
  const std::chrono::duration<double> most(seconds);
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, most, [this] { return state_.over(); })) return false;
  changed_.wait_for(lock, most, [this] { return !state_.has_connections(); });
  return true;
}

bool Server::alone() {
  const std::lock_guard lock(mutex_);
  return !state_.has_connections();
}

}  // namespace muster::ps
