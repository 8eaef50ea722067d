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
// A worker between two requests computes, or evaluates; a dead one is known by its connection.
constexpr double kSilenceSeconds = 24 * 3600;
// Waits for the state of others end after so long with what there is, so that the asking side can
// look at its own stop.
constexpr auto kWaitAtMost = std::chrono::seconds(1);

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
  Buffers buffers;
  while (true) {
    const auto message = channel.Receive(Deadline::After(kSilenceSeconds), *stop_);
    if (!message.ok()) break;
    absl::Status status = Handle(id, incarnation, *message, &buffers);
    if (stop_->is_set()) break;
    if (!status.ok()) {
      Print(Refused{.code = static_cast<uint32_t>(status.code()),
                    .text = std::string(ToStd(status.message()))},
            &buffers.answer);
    }
    const uint16_t type = status.ok() ? kAnswer : kRefused;
    if (!channel.Send(type, buffers.answer, Deadline::After(kSendSeconds), *stop_).ok()) break;
  }
  channel.Close();
  const std::lock_guard lock(mutex_);
  state_.OnClosed(id);
  changed_.notify_all();
}

template <class Ask>
absl::Status Server::Until(std::unique_lock<std::mutex>& lock, Ask ask) {
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool answered, ask());
    if (answered) return absl::OkStatus();
    if (stop_->is_set()) return stop_->status();
    changed_.wait(lock);
  }
}

absl::Status Server::Handle(Connection id, int64_t incarnation, const Message& message,
                            Buffers* buffers) {
  const ConstBytes bytes = message.bytes();
  switch (message.type) {
    case kHello: {
      MUSTER_ASSIGN_OR_RETURN(const Hello hello, Parse<Hello>(bytes));
      const std::lock_guard lock(mutex_);
      MUSTER_ASSIGN_OR_RETURN(const State state, state_.OnHello(id, incarnation, hello));
      changed_.notify_all();
      Print(state, &buffers->answer);
      return absl::OkStatus();
    }
    case kWait:
      return HandleWait(id, bytes, &buffers->answer);
    case kPull:
      return HandlePull(id, bytes, buffers);
    case kPush:
      return HandlePush(id, bytes, &buffers->answer);
    case kHold:
      return HandleHold(id, bytes, &buffers->answer);
    default:
      return HandleChief(id, message.type, bytes, &buffers->answer);
  }
}

// Requests that never wait.
absl::Status Server::HandleChief(Connection id, uint16_t type, ConstBytes bytes, Bytes* answer) {
  const auto with = [&]<class M>(auto change, M*) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const M message, Parse<M>(bytes));
    const std::lock_guard lock(mutex_);
    MUSTER_RETURN_IF_ERROR(change(message));
    changed_.notify_all();
    return absl::OkStatus();
  };
  answer->clear();
  Begin* const begin = nullptr;
  Slice* const slice = nullptr;
  switch (type) {
    case kBegin:
      return with([&](const Begin& m) { return state_.OnBegin(id, m); }, begin);
    case kLoad:
      return with([&](const Slice& m) { return state_.OnLoad(id, m); }, slice);
    case kReady:
      return with([&](const Ready& m) { return state_.OnReady(id, m); },
                  static_cast<Ready*>(nullptr));
    case kRelease:
      return with([&](const Begin& m) { return state_.OnRelease(id, m); }, begin);
    case kFinish:
      return with([&](const Begin& m) { return state_.OnFinish(id, m); }, begin);
    case kEnd:
      return with([&](const Begin&) { return state_.OnEnd(id); }, begin);
    case kBreak:
      return with([&](const Break& m) { return state_.OnBreak(id, m); },
                  static_cast<Break*>(nullptr));
    case kFetch:
      return with(
          [&](Slice m) -> absl::Status {
            MUSTER_ASSIGN_OR_RETURN(m.values, state_.OnFetch(id, m));
            Print(m, answer);
            return absl::OkStatus();
          },
          slice);
    default:
      return absl::InvalidArgumentError(StrCat("a parameter server knows no request ", type));
  }
}

absl::Status Server::HandleWait(Connection id, ConstBytes bytes, Bytes* answer) {
  MUSTER_ASSIGN_OR_RETURN(const Wait wait, Parse<Wait>(bytes));
  const auto until = std::chrono::steady_clock::now() + kWaitAtMost;
  std::unique_lock lock(mutex_);
  while (true) {
    State state;
    MUSTER_ASSIGN_OR_RETURN(const bool answered, state_.AnswerWait(id, wait, &state));
    if (answered) {
      Print(state, answer);
      return absl::OkStatus();
    }
    if (stop_->is_set()) return stop_->status();
    if (changed_.wait_until(lock, until) == std::cv_status::timeout) {
      return absl::DeadlineExceededError("nothing changed");
    }
  }
}

absl::Status Server::HandlePull(Connection id, ConstBytes bytes, Buffers* buffers) {
  MUSTER_ASSIGN_OR_RETURN(const Pull pull, Parse<Pull>(bytes));
  std::unique_lock lock(mutex_);
  MUSTER_RETURN_IF_ERROR(state_.OnPull(id, pull));
  changed_.notify_all();
  Pulled pulled;
  MUSTER_RETURN_IF_ERROR(Until(
      lock, [&] { return state_.AnswerPull(id, pull, &buffers->dense, &buffers->rows, &pulled); }));
  lock.unlock();
  Print(pulled, &buffers->answer);
  return absl::OkStatus();
}

absl::Status Server::HandlePush(Connection id, ConstBytes bytes, Bytes* answer) {
  Bytes copy(bytes.begin(), bytes.end());
  std::unique_lock lock(mutex_);
  MUSTER_RETURN_IF_ERROR(state_.OnPush(id, std::move(copy)));
  changed_.notify_all();
  Pushed pushed;
  MUSTER_RETURN_IF_ERROR(Until(lock, [&] { return state_.AnswerPush(id, &pushed); }));
  Print(pushed, answer);
  return absl::OkStatus();
}

absl::Status Server::HandleHold(Connection id, ConstBytes bytes, Bytes* answer) {
  MUSTER_ASSIGN_OR_RETURN(const Hold hold, Parse<Hold>(bytes));
  std::unique_lock lock(mutex_);
  MUSTER_RETURN_IF_ERROR(state_.OnHold(id, hold));
  Held held;
  MUSTER_RETURN_IF_ERROR(Until(lock, [&] { return state_.AnswerHold(id, hold, &held); }));
  Print(held, answer);
  return absl::OkStatus();
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
