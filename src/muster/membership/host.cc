#include "muster/membership/host.h"

#include <chrono>
#include <utility>

#include "muster/net/transport/link_watch.h"

namespace muster::membership {
namespace {

using net::transport::Channel;
using net::transport::ChannelOptions;
using net::transport::Interrupt;
using process::Deadline;

constexpr double kAnswerSeconds = 10;
constexpr auto kTick = std::chrono::milliseconds(100);

// Describes how a connection ended, for people: "closed its connection".
std::string GetCause(const absl::Status& end) {
  if (net::transport::IsBrokenLink(end)) {
    return StrCat("cannot be reached any more: ", ToStd(end.message()));
  }
  return absl::IsUnavailable(end) ? "closed its connection" : std::string(ToStd(end.message()));
}

}  // namespace

Host::Host(RosterSpec spec, const Clock& clock, Note note, std::unique_ptr<Interrupt> stop)
    : lease_seconds_(spec.lease_seconds),
      clock_(clock),
      note_(std::move(note)),
      stop_(std::move(stop)),
      roster_(std::move(spec)),
      ticker_([this](const std::stop_token& token) { Tick(token); }) {}

absl::StatusOr<std::unique_ptr<Host>> Host::Start(RosterSpec spec, const Clock& clock, Note note) {
  MUSTER_ASSIGN_OR_RETURN(auto stop, Interrupt::Create());
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<Host>(new Host(std::move(spec), clock, std::move(note), std::move(stop)));
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
  // The thread of an ended connection does not use the mutex any more.
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
    // The roster judges silence; this deadline only ends a connection whose other end is gone.
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
      status = absl::PermissionDeniedError(StrCat("asked to join as ",
                                                  job::TaskName(message->join->member.id.task),
                                                  ", but authenticated as ", job::TaskName(task)));
      break;
    }
    std::vector<std::string> refusals;
    {
      const std::lock_guard lock(mutex_);
      Deliver(roster_.OnMessage(id, *message, Now()));
      refusals = roster_.ConsumeRefusals();
    }
    for (const std::string& each : refusals) {
      if (note_) note_(each);
    }
    status = Answer(id, channel, &close);
  }
  channel.Close();
  if (absl::IsDataLoss(status) && note_) note_(std::string(ToStd(status.message())));
  const std::lock_guard lock(mutex_);
  connections_.erase(id);
  if (!stop_->is_set()) {
    Deliver(roster_.OnClosed(id, GetCause(status), Now()));
  }
  changed_.notify_all();
}

absl::Status Host::Answer(Roster::Connection id, Channel& channel, bool* close) {
  std::vector<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    Connection& connection = connections_[id];
    messages.swap(connection.pending);
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

void Host::Deliver(std::vector<Roster::Outgoing> outgoing) {
  for (Roster::Outgoing& each : outgoing) {
    const auto found = connections_.find(each.to);
    if (found == connections_.end()) continue;
    found->second.pending.push_back(std::move(each.message));
    found->second.close |= each.close;
  }
}

void Host::Tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Deliver(roster_.OnTick(Now()));
    changed_.wait_for(lock, stop, kTick, [] { return false; });
  }
}

absl::Status Host::AwaitEvaluators(const std::atomic<bool>* stop) {
  std::unique_lock lock(mutex_);
  Deliver(roster_.OnTrained(Now()));
  while (stop == nullptr || !stop->load()) {
    MUSTER_ASSIGN_OR_RETURN(const bool evaluated, roster_.evaluated(Now()));
    if (evaluated) break;
    // `stop` must be polled: a signal handler can only set it.
    changed_.wait_for(lock, kTick);
  }
  return absl::OkStatus();
}

absl::Status Host::status() {
  const std::lock_guard lock(mutex_);
  return roster_.status();
}

void Host::End(double seconds, bool stopped) {
  std::unique_lock lock(mutex_);
  Deliver(roster_.OnEnd(Now(), stopped));
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return connections_.empty(); });
}

}  // namespace muster::membership
