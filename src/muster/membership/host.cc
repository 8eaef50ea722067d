#include "muster/membership/host.h"

#include <chrono>
#include <utility>

namespace muster::membership {
namespace {

using net::transport::Channel;
using net::transport::ChannelOptions;
using net::transport::Interrupt;
using process::Deadline;

constexpr double kAnswerSeconds = 10;
constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

Host::Host(RosterSpec spec, const Clock& clock, std::unique_ptr<Interrupt> stop)
    : lease_seconds_(spec.lease_seconds),
      clock_(clock),
      stop_(std::move(stop)),
      roster_(std::move(spec)),
      ticker_([this](const std::stop_token& token) { Tick(token); }) {}

absl::StatusOr<std::unique_ptr<Host>> Host::Start(RosterSpec spec, const Clock& clock) {
  MUSTER_ASSIGN_OR_RETURN(auto stop, Interrupt::Create());
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<Host>(new Host(std::move(spec), clock, std::move(stop)));
}

Host::~Host() {
  stop_->Set(absl::CancelledError("the host of membership ends"));
  ticker_.request_stop();
  std::map<Roster::Connection, std::jthread> threads;
  {
    const std::lock_guard lock(mutex_);
    threads.swap(threads_);
  }
}

void Host::Serve(const net::transport::Peer& peer, std::unique_ptr<net::transport::Stream> stream) {
  const auto task = job::ParseTaskName(StrCat(peer.identity.role, "-", peer.identity.index));
  if (!task) return stream->Close();
  auto channel = std::make_shared<Channel>(
      std::move(stream), ChannelOptions{.peer = net::transport::ShortName(peer.identity),
                                        .max_message_bytes = kMaxMessageBytes});
  const std::lock_guard lock(mutex_);
  // An ended one has done all that wants the mutex.
  std::erase_if(threads_, [this](const auto& each) { return !connections_.contains(each.first); });
  const Roster::Connection id = ++last_connection_;
  connections_[id];
  threads_.emplace(
      id, std::jthread([this, id, task = *task, channel] { Converse(id, task, *channel); }));
}

size_t Host::threads() {
  const std::lock_guard lock(mutex_);
  return threads_.size();
}

void Host::Converse(Roster::Connection id, job::TaskId task, Channel& channel) {
  absl::Status status;
  bool close = false;
  while (status.ok() && !close) {
    // Silence is the roster's to judge; this only ends a connection whose other end is no more.
    auto got = channel.Receive(Deadline::After(4 * lease_seconds_), *stop_);
    if (!got.ok()) {
      status = got.status();
      break;
    }
    const auto bytes = got->bytes();
    const auto message = Parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!message.ok()) {
      status = message.status();
      break;
    }
    if (message->join && !(message->join->member.id.task == task)) {
      status = absl::PermissionDeniedError(
          StrCat("asked to be ", job::TaskName(message->join->member.id.task)));
      break;
    }
    {
      const std::lock_guard lock(mutex_);
      Take(roster_.OnMessage(id, *message, Now()));
    }
    status = Answer(id, channel, &close);
  }
  channel.Close();
  const std::lock_guard lock(mutex_);
  connections_.erase(id);
  if (!stop_->is_set()) {
    Take(roster_.OnClosed(
        id, absl::IsUnavailable(status) ? "closed its connection" : ToStd(status.message()),
        Now()));
  }
  changed_.notify_all();
}

absl::Status Host::Answer(Roster::Connection id, Channel& channel, bool* close) {
  std::vector<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    Connection& connection = connections_[id];
    messages.swap(connection.unsaid);
    *close = connection.close;
  }
  const Deadline deadline = Deadline::After(kAnswerSeconds);
  for (const Message& message : messages) {
    const std::string text = Print(message);
    MUSTER_RETURN_IF_ERROR(
        channel.Send(kMessage, std::as_bytes(std::span(text)), deadline, *stop_));
  }
  return channel.Send(kEnd, {}, deadline, *stop_);
}

void Host::Take(std::vector<Roster::Outgoing> outgoing) {
  for (Roster::Outgoing& each : outgoing) {
    const auto found = connections_.find(each.to);
    if (found == connections_.end()) continue;
    found->second.unsaid.push_back(std::move(each.message));
    found->second.close |= each.close;
  }
}

void Host::Tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Take(roster_.OnTick(Now()));
    changed_.wait_for(lock, stop, kTick, [] { return false; });
  }
}

absl::Status Host::AwaitEvaluators(const std::atomic<bool>* stop) {
  std::unique_lock lock(mutex_);
  Take(roster_.OnTrained(Now()));
  while (stop == nullptr || !stop->load()) {
    MUSTER_ASSIGN_OR_RETURN(const bool evaluated, roster_.evaluated(Now()));
    if (evaluated) break;
    // A signal handler can set `stop`, and nothing more: it must be looked for.
    changed_.wait_for(lock, kTick);
  }
  return absl::OkStatus();
}

void Host::End(double seconds) {
  std::unique_lock lock(mutex_);
  Take(roster_.OnEnd(Now()));
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return connections_.empty(); });
}

}  // namespace muster::membership
