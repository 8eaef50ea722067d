#include "muster/ps/server/server.h"

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
// Between two requests a worker may compute or evaluate for long; a dead worker is detected by the
// keep-alives of its connection (net/transport/socket_stream.h).
constexpr double kSilenceSeconds = 24 * 3600;
// A request that waits gets a keep-alive this often, and a kWait then ends, so that its sender can
// check its own `stop`.
constexpr auto kWaitAtMost = std::chrono::seconds(1);

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Create(const ServerSpec& spec,
                                                       std::span<const Variable> variables,
                                                       const Placement& placement, Note note,
                                                       TableStorage storage) {
  MUSTER_ASSIGN_OR_RETURN(auto stop, Interrupt::Create());
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<Server>(
      new Server(spec, variables, placement, std::move(note), std::move(storage), std::move(stop)));
}

Server::Server(const ServerSpec& spec, std::span<const Variable> variables,
               const Placement& placement, Note note, TableStorage storage,
               std::unique_ptr<Interrupt> stop)
    : note_(std::move(note)),
      stop_(std::move(stop)),
      state_(spec, variables, placement),
      tables_(std::move(storage), variables, placement, spec.server),
      ticker_([this](const std::stop_token& token) { Tick(token); }) {}

Server::~Server() {
  stop_->Set(absl::UnavailableError("the parameter server ends"));
  ticker_.request_stop();
  std::map<Connection, std::jthread> threads;
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
  for (const Connection ended : ended_) threads_.erase(ended);
  ended_.clear();
  const Connection id = ++last_connection_;
  threads_.emplace(
      id, std::jthread([this, id, incarnation, channel] { Converse(id, incarnation, *channel); }));
}

size_t Server::threads() {
  const std::lock_guard lock(mutex_);
  return threads_.size();
}

void Server::Converse(Connection id, int64_t incarnation, Channel& channel) {
  Request request(id, incarnation);
  while (true) {
    const auto message = channel.Receive(Deadline::After(kSilenceSeconds), *stop_);
    if (!message.ok()) {
      // The sender of a damaged message gets the reason; a closed connection gets nothing.
      if (absl::IsDataLoss(message.status())) {
        channel.SendFailure(message.status(), Deadline::After(kTellSeconds)).IgnoreError();
      }
      break;
    }
    const bool is_about_files = message->type >= kReadFile && message->type <= kLoadTables;
    const absl::Status status = is_about_files ? HandleFiles(*message, id, channel, &request)
                                               : Handle(*message, channel, &request);
    if (stop_->is_set()) break;
    if (absl::IsFailedPrecondition(status) && note_) {
      note_(StrCat("refused a replica: ", status.message()));
    }
    const uint16_t type = request.Print(status);
    if (!channel.Send(type, request.answer(), Deadline::After(kSendSeconds), *stop_).ok()) break;
  }
  channel.Close();
  const std::lock_guard lock(mutex_);
  state_.OnClosed(id);
  ended_.insert(id);
  changed_.notify_all();
}

absl::Status Server::Handle(const Message& message, Channel& channel, Request* request) {
  MUSTER_RETURN_IF_ERROR(request->Read(message));
  auto until = std::chrono::steady_clock::now() + kWaitAtMost;
  std::unique_lock lock(mutex_);
  state_.SetTime(Now());
  MUSTER_RETURN_IF_ERROR(state_.stopped());
  MUSTER_RETURN_IF_ERROR(request->Apply(state_));
  changed_.notify_all();
  while (true) {
    state_.SetTime(Now());
    MUSTER_ASSIGN_OR_RETURN(const bool answered, request->Answer(state_));
    if (answered) return absl::OkStatus();
    if (stop_->is_set()) return stop_->status();
    const bool has_changed = changed_.wait_until(lock, until) == std::cv_status::no_timeout;
    if (!has_changed) {
      until = std::chrono::steady_clock::now() + kWaitAtMost;
      const std::string awaited = state_.Awaited();
      lock.unlock();
      MUSTER_RETURN_IF_ERROR(TellAlive(awaited, channel));
      if (request->is_wait()) return absl::DeadlineExceededError("nothing changed");
      lock.lock();
    }
    MUSTER_RETURN_IF_ERROR(state_.stopped());
  }
}

absl::Status Server::TellAlive(const std::string& awaited, Channel& channel) {
  Bytes bytes;
  Print(Refused{.text = awaited}, &bytes);
  channel.LookForClose();
  return channel.Send(kAlive, bytes, Deadline::After(kSendSeconds), *stop_);
}

// Notes which replicas the others wait for, each time that changes; but not during the first
// second, in which all tasks start.
void Server::Tick(const std::stop_token& stop) {
  std::string said;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    state_.SetTime(Now());
    const bool ended = !state_.OnTick().ok();
    if (ended) changed_.notify_all();
    tick_.wait_for(lock, stop, kWaitAtMost, [] { return false; });
    std::string awaited = ended ? "" : state_.Awaited();
    if (awaited == said || stop.stop_requested()) continue;
    said = std::move(awaited);
    if (said.empty() || !note_) continue;
    lock.unlock();
    note_(StrCat("waiting for ", said));
    lock.lock();
  }
}

bool Server::WaitForEnd(double seconds) {
  const std::chrono::duration<double> most(seconds);
  std::unique_lock lock(mutex_);
  const auto ends = [this] { return state_.over() || state_.may_go() || !state_.stopped().ok(); };
  changed_.wait_for(lock, most, ends);
  const bool over = state_.over();
  if (!ends()) return false;
  // The last answers are still being sent.
  changed_.wait_for(lock, most, [this] { return !state_.has_connections(); });
  return over;
}

absl::Status Server::stopped() {
  const std::lock_guard lock(mutex_);
  return state_.stopped();
}

absl::Status Server::failure() {
  const std::lock_guard lock(mutex_);
  state_.SetTime(Now());
  return state_.OnTick();
}

void Server::AskForSave() {
  const std::lock_guard lock(mutex_);
  state_.OnTerminate();
  changed_.notify_all();
}

bool Server::may_go() {
  const std::lock_guard lock(mutex_);
  return state_.may_go();
}

bool Server::is_saved() {
  const std::lock_guard lock(mutex_);
  return state_.is_saved();
}

bool Server::alone() {
  const std::lock_guard lock(mutex_);
  return !state_.has_connections();
}

}  // namespace muster::ps
