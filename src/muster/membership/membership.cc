#include "muster/membership/membership.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "muster/membership/host.h"
#include "muster/membership/view_change.h"
#include "muster/net/transport/dial.h"
#include "muster/net/transport/handshake.h"

namespace muster::membership {
namespace {

using net::transport::Channel;
using net::transport::ChannelOptions;
using net::transport::Interrupt;
using process::Deadline;

constexpr double kDialSeconds = 1;
constexpr double kQuietSeconds = 1;  // a longer wait for a host is noted
constexpr double kHandshakeSeconds = 10;
constexpr double kGoodbyeSeconds = 2;  // to tell the host that this member was told to end
// A member that waits for a view asks more often, so that starting takes little time.
constexpr auto kFirstWait = std::chrono::milliseconds(1);
constexpr auto kLongestWait = std::chrono::milliseconds(50);
constexpr double kBeatsInALease = 4;
// All members of a view hear within a beat that a newcomer joins. If nothing moves in a step for
// this long after that, another member has stopped before the step.
constexpr auto kStuck = std::chrono::milliseconds(500);
// A step that moves bytes may take this part of the time after which the host gives up the view.
constexpr double kPlannedShare = 0.25;

absl::Status Leaving() { return absl::CancelledError("this task was told to end"); }

int64_t Nanos() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

Membership::Membership(MembershipOptions options, const net::Token& key,
                       std::unique_ptr<Interrupt> stop)
    : options_(std::move(options)), key_(key), stop_(std::move(stop)) {}

absl::StatusOr<std::unique_ptr<Membership>> Membership::Start(MembershipOptions options,
                                                              const net::Token& key) {
  MUSTER_ASSIGN_OR_RETURN(auto stop, Interrupt::Create());
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<Membership> member(new Membership(std::move(options), key, std::move(stop)));
  MUSTER_ASSIGN_OR_RETURN(member->interrupt_, Interrupt::Create());
  member->lost_nanos_ = Nanos();
  member->thread_ = std::jthread([raw = member.get()](const std::stop_token& token) {
    raw->Run(token);
    raw->channel_.reset();  // so that the host does not wait for this member
  });
  return member;
}

Membership::~Membership() {
  stop_->Set(absl::CancelledError("this member ends"));
  thread_.request_stop();
}

void Membership::WaitUntil(std::unique_lock<std::mutex>& lock, const std::function<bool()>& holds) {
  // `stop` must be polled: a signal handler can only set it.
  while (!holds() && !ended()) changed_.wait_for(lock, kLongestWait);
}

absl::Status Membership::End() const {
  if (stopped()) return absl::CancelledError("stopped while waiting for the other tasks");
  return refused_.ok() ? absl::CancelledError("the chief has ended training") : refused_;
}

absl::StatusOr<View> Membership::Join(const StateId& state, const std::optional<Broken>& failure) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Interrupt> interrupt, Interrupt::Create());
  std::unique_lock lock(mutex_);
  // If view_ is unset, the host itself has reported the failure and need not be told.
  if (failure && view_) Send({.failure = failure});
  view_.reset();
  interrupt_ = std::move(interrupt);
  join_ = membership::Join{.member = {.id = options_.id,
                                      .address = options_.address,
                                      .step = state.step,
                                      .state_generation = state.generation},
                           .last_generation = last_generation_,
                           .agreement = options_.agreement};
  join_sent_ = formed_ = false;
  changed_.notify_all();
  WaitUntil(lock, [this] { return view_.has_value(); });
  join_.reset();
  if (ended()) return End();
  return *view_;
}

void Membership::SetFormed() {
  const std::lock_guard lock(mutex_);
  formed_ = true;
}

std::shared_ptr<Interrupt> Membership::interrupt() {
  const std::lock_guard lock(mutex_);
  return interrupt_;
}

absl::Status Membership::WaitForEnd() {
  std::unique_lock lock(mutex_);
  WaitUntil(lock, [this] { return !view_; });
  if (over_) return absl::OkStatus();
  if (ended()) return End();
  return absl::AbortedError("the generation broke before the chief had ended training");
}

absl::StatusOr<bool> Membership::AwaitTrained(double seconds) {
  std::unique_lock lock(mutex_);
  if (!watches_) {
    watches_ = true;
    join_.emplace();
    join_->member.id = options_.id;
    join_->member.address = options_.address;
    join_->agreement = options_.agreement;
    changed_.notify_all();
  }
  const Deadline deadline = Deadline::After(seconds);
  WaitUntil(lock, [&] { return trained_ || deadline.expired(); });
  if (trained_) return true;
  if (stopped() || !refused_.ok()) return End();
  if (over_) return absl::CancelledError("the chief has stopped training before its end");
  return false;
}

absl::Status Membership::Leave() {
  std::unique_lock lock(mutex_);
  leaves_ = true;
  Send({.leave = true});
  WaitUntil(lock, [this] { return over_; });
  return over_ ? absl::OkStatus() : End();
}

void Membership::Send(Message message) {
  pending_.push_back(std::move(message));
  changed_.notify_all();
}

void Membership::Run(const std::stop_token& stop) {
  auto wait = kFirstWait;
  while (!stop.stop_requested()) {
    const bool leaves = leaving();
    if (leaves) {
      const std::lock_guard lock(mutex_);
      Send({.away = true});
      if (channel_ == nullptr) return interrupt_->Set(Leaving());  // there is no host to inform
    }
    absl::Status status = channel_ == nullptr ? Connect() : absl::OkStatus();
    if (status.ok()) status = Converse();
    if (!status.ok()) OnHostLost(status);
    std::unique_lock lock(mutex_);
    if (leaves) interrupt_->Set(Leaving());
    EndPlanned();
    // A member that is stopped goes on until the host ends the training, since the stop is agreed
    // on in a step; one that leaves has told the host.
    if ((over_ || !refused_.ok() || leaves) && leaves == leaving()) return;
    const bool waiting = join_.has_value() && !view_ && !watches_;
    wait = waiting ? std::min(wait * 2, kLongestWait) : kFirstWait;
    changed_.wait_for(lock, stop, waiting ? wait : GetBeat(), [&] {
      return !pending_.empty() || (join_.has_value() && !join_sent_ && channel_ != nullptr);
    });
  }
}

std::chrono::milliseconds Membership::GetBeat() const {
  const double members = view_ ? static_cast<double>(view_->members.size()) : 0;
  const double seconds = std::min(std::max(kBeatSeconds, kBeatSecondsOfMember * members),
                                  options_.lease_seconds / kBeatsInALease);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

absl::Status Membership::Connect() {
  net::transport::Identity self = {.job = options_.job,
                                   .role = std::string(job::TypeName(options_.id.task.type)),
                                   .index = static_cast<uint32_t>(options_.id.task.index),
                                   .incarnation = static_cast<uint64_t>(options_.id.incarnation)};
  MUSTER_ASSIGN_OR_RETURN(auto stream, Dial(options_.host, {.protection = options_.protection},
                                            Deadline::After(kDialSeconds), *stop_));
  MUSTER_ASSIGN_OR_RETURN(
      const auto peer,
      DialHandshake(*stream, key_, self, kService, Deadline::After(kHandshakeSeconds), *stop_));
  channel_ = std::make_unique<Channel>(
      std::move(stream), ChannelOptions{.peer = net::transport::ShortName(peer.identity),
                                        .max_message_bytes = kMaxMessageBytes});
  const std::lock_guard lock(mutex_);
  join_sent_ = false;
  return absl::OkStatus();
}

// Sends all pending messages, or an empty one, and handles the answer to each.
absl::Status Membership::Converse() {
  std::deque<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(pending_);
    if (join_.has_value() && !join_sent_ && !leaving()) {
      join_->last_generation = last_generation_;
      join_->known_view = known_view_ ? known_view_->generation : 0;
      messages.push_back({.join = join_});
      join_sent_ = true;
      // A message on an earlier connection may not have arrived.
      if (leaves_) messages.push_back({.leave = true});
    }
    if (messages.empty()) messages.emplace_back();
  }
  for (const Message& message : messages) {
    const Deadline deadline = Deadline::After(leaving() ? kGoodbyeSeconds : options_.lease_seconds);
    const std::string text = Print(message);
    MUSTER_RETURN_IF_ERROR(
        channel_->Send(kMessage, std::as_bytes(std::span(text)), deadline, *stop_));
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const auto got, channel_->Receive(deadline, *stop_));
      if (got.type == kEnd) break;
      MUSTER_ASSIGN_OR_RETURN(
          const Message answer,
          Parse({reinterpret_cast<const char*>(got.bytes().data()), got.bytes().size()}));
      MUSTER_RETURN_IF_ERROR(Handle(answer));
    }
  }
  return absl::OkStatus();
}

// A change that does not fit is forgotten with the view that it was to change: the next join gets
// the whole view.
absl::StatusOr<View> Membership::Apply(const ViewChange& change) {
  const std::optional<View> known = std::exchange(known_view_, std::nullopt);
  if (known) return ApplyChange(*known, change);
  return absl::InvalidArgumentError(
      StrCat("a change of view ", change.base, " came, and this task has no view"));
}

absl::Status Membership::Handle(const Message& message) {
  const std::lock_guard lock(mutex_);
  std::optional<View> view = message.view;
  if (message.change) {
    MUSTER_ASSIGN_OR_RETURN(view, Apply(*message.change));
  }
  if (view) known_view_ = view;
  if (view && view->GetRank(options_.id.task) >= 0 && join_sent_) {
    view_ = std::move(view);
    last_generation_ = view_->generation;
  }
  if (message.broken) OnBroken(*message.broken);
  trained_ = trained_ || message.trained;
  if (message.leave) {
    over_ = true;
    interrupt_->Set(absl::CancelledError("the chief has ended training"));
  }
  if (!message.refused.empty()) {
    refused_ = absl::FailedPreconditionError(message.refused);
    interrupt_->Set(refused_);
  }
  if (!message.waiting.empty() && options_.note && !watches_) {
    options_.note(StrCat("waiting for ", message.waiting));
  }
  changed_.notify_all();
  return absl::OkStatus();
}

void Membership::OnBroken(const Broken& broken) {
  const bool is_joining = join_.has_value();
  if (broken.planned && formed_) {
    interrupt_->Plan(ToStatus(broken));
    planned_nanos_ = moved_nanos_ = Nanos();
    patience_ = kStuck + GetBeat();
  } else if (view_ || !is_joining) {
    interrupt_->Set(ToStatus(broken));
  }
  // The view was broken before Join returned it: the same join is sent again.
  if (view_ && is_joining) join_sent_ = false;
  view_.reset();
}

void Membership::EndPlanned() {
  if (!interrupt_->is_planned()) return;
  const int64_t now = Nanos();
  if (interrupt_->ConsumeMoves()) moved_nanos_ = now;
  const double seconds = static_cast<double>(now - planned_nanos_) * 1e-9;
  const bool is_stuck = now - moved_nanos_ > std::chrono::nanoseconds(patience_).count();
  if (is_stuck || seconds > kPlannedShare * options_.rendezvous_seconds) {
    interrupt_->Set(interrupt_->planned());
  }
}

// The connection to the host is lost. Without a host no member may continue; the next host requires
// a new join.
void Membership::OnHostLost(const absl::Status& why) {
  if (channel_ != nullptr) lost_nanos_ = Nanos();
  noted_loss_ = noted_loss_ && channel_ == nullptr;
  channel_.reset();
  if (absl::IsDataLoss(why) && options_.note) options_.note(std::string(ToStd(why.message())));
  const double seconds = static_cast<double>(Nanos() - lost_nanos_) * 1e-9;
  const bool is_over = seconds > kQuietSeconds && options_.has_ended && options_.has_ended();
  const std::lock_guard lock(mutex_);
  if (view_ || !join_.has_value()) {
    interrupt_->Set(Annotate(absl::AbortedError(why.message()), "the chief's membership"));
  }
  view_.reset();
  join_sent_ = false;
  if (is_over) {
    refused_ = absl::CancelledError("training has ended while this task was away");
    interrupt_->Set(refused_);
    return changed_.notify_all();
  }
  if (seconds > kQuietSeconds && !noted_loss_ && !ended() && options_.note) {
    options_.note(
        StrCat("waiting for the chief at ", ToString(options_.host), ": ", why.message()));
    noted_loss_ = true;
  }
  const bool hopeless = absl::IsUnauthenticated(why) || absl::IsFailedPrecondition(why);
  if (hopeless || seconds > options_.rendezvous_seconds) {
    refused_ = hopeless ? why
                        : Annotate(absl::DeadlineExceededError(why.message()),
                                   StrCat("waited ", options_.rendezvous_seconds,
                                          " s for the chief at ", ToString(options_.host)));
    interrupt_->Set(refused_);
  }
  changed_.notify_all();
}

}  // namespace muster::membership
