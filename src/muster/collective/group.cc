#include "muster/collective/group.h"

#include <optional>
#include <utility>

#include "muster/collective/rank_failure.h"

namespace muster::collective {
namespace {

using process::Deadline;

constexpr uint16_t kPieces = 1;  // the only type of message: its order and size identify it
// The longest time to tell a peer why the group has ended. The peer may be stuck; it does no harm
// if the message does not arrive.
constexpr double kTellSeconds = 0.5;

}  // namespace

Group::Group(int rank, std::vector<std::unique_ptr<Channel>> channels, const Interrupt& interrupt,
             GroupOptions options)
    : rank_(rank),
      channels_(std::move(channels)),
      interrupt_(interrupt),
      options_(std::move(options)) {}

Group::~Group() {
  if (!options_.retire) return;
  if (!told_ && !status_.ok()) {
    Tell(absl::AbortedError(FormatRankFailure(GetName(rank_), ToStd(status_.message()), "")), 0);
  }
  for (size_t rank = 0; rank < channels_.size(); ++rank) {
    if (channels_[rank] == nullptr) continue;
    options_.retire(static_cast<int>(rank), std::move(channels_[rank]));
  }
}

std::string Group::GetName(int rank) const {
  const auto index = static_cast<size_t>(rank);
  return RankName(rank, index < options_.names.size() ? options_.names[index] : "");
}

absl::StatusOr<Channel*> Group::GetChannel(int rank) {
  MUSTER_RETURN_IF_ERROR(status_);
  std::unique_ptr<Channel>& channel = channels_[static_cast<size_t>(rank)];
  if (channel != nullptr) return channel.get();
  absl::StatusOr<std::unique_ptr<Channel>> made = options_.connect(rank);
  if (!made.ok() && interrupt_.is_set()) return status_ = interrupt_.status();
  if (!made.ok()) return Unreached(rank, made.status());
  channel = *std::move(made);
  return channel.get();
}

absl::Status Group::Exchange(int to, ConstBytes out, int from, size_t in_bytes, Take take) {
  MUSTER_ASSIGN_OR_RETURN(Channel* const target, GetChannel(to));
  MUSTER_ASSIGN_OR_RETURN(Channel* const source, GetChannel(from));
  const absl::Status status =
      Channel::Exchange(kPieces, *target, out, *source, in_bytes, take, NextDeadline(), interrupt_);
  return status.ok() ? status : Blame(status, to, from);
}

absl::Status Group::Exchange(int to, ConstBytes out, int from, MutableBytes in) {
  MUSTER_ASSIGN_OR_RETURN(Channel* const target, GetChannel(to));
  MUSTER_ASSIGN_OR_RETURN(Channel* const source, GetChannel(from));
  const absl::Status status =
      Channel::Exchange(kPieces, *target, out, *source, in, NextDeadline(), interrupt_);
  return status.ok() ? status : Blame(status, to, from);
}

absl::Status Group::Exchange(int to, ConstBytes out, int from, uint64_t max_bytes,
                             std::vector<std::byte>* in) {
  MUSTER_ASSIGN_OR_RETURN(Channel* const target, GetChannel(to));
  MUSTER_ASSIGN_OR_RETURN(Channel* const source, GetChannel(from));
  std::optional<size_t> too_many;
  const auto make_room = [&](size_t bytes) -> absl::StatusOr<MutableBytes> {
    if (bytes > max_bytes) {
      too_many = bytes;
      return absl::DataLossError("too many bytes");
    }
    in->resize(bytes);
    return MutableBytes(*in);
  };
  const absl::Status status =
      Channel::Exchange(kPieces, *target, out, *source, make_room, NextDeadline(), interrupt_);
  if (too_many) {
    return Accuse(from, StrCat("sends ", *too_many, " bytes, but at most ", max_bytes, " are due"));
  }
  return status.ok() ? status : Blame(status, to, from);
}

absl::Status Group::Send(int to, ConstBytes out) {
  MUSTER_ASSIGN_OR_RETURN(Channel* const target, GetChannel(to));
  const absl::Status status = target->Send(kPieces, out, NextDeadline(), interrupt_);
  return status.ok() ? status : Blame(status, to, -1);
}

absl::Status Group::Receive(int from, size_t in_bytes, Take take) {
  MUSTER_ASSIGN_OR_RETURN(Channel* const source, GetChannel(from));
  const absl::Status status =
      source->ReceiveParts(kPieces, in_bytes, take, NextDeadline(), interrupt_);
  return status.ok() ? status : Blame(status, -1, from);
}

absl::Status Group::Check() {
  if (status_.ok() && interrupt_.is_set()) status_ = interrupt_.status();
  if (status_.ok()) status_ = interrupt_.planned();
  return status_;
}

absl::Status Group::Fail(const absl::Status& why) {
  if (!status_.ok()) return status_;
  return End(absl::AbortedError(FormatRankFailure(GetName(rank_), ToStd(why.message()), "")));
}

absl::Status Group::Accuse(int rank, std::string_view what) {
  if (!status_.ok()) return status_;
  const std::string text = FormatRankFailure(GetName(rank), what, "");
  End(absl::AbortedError(text)).IgnoreError();
  return status_ = absl::DataLossError(text);
}

absl::Status Group::Unreached(int rank, const absl::Status& why) {
  if (!status_.ok()) return status_;
  return Lost(rank, ToStd(why.message()));
}

// An error that names a rank already comes from another rank, which tells all ranks itself.
absl::Status Group::Blame(const absl::Status& error, int to, int from) {
  if (interrupt_.is_set()) return status_ = interrupt_.status();
  const std::string_view message = ToStd(error.message());
  if (ParseRankFailure(message)) return End(error);
  int culprit = from >= 0 ? from : to;
  const auto names = [&](int rank) {
    return rank >= 0 && message.find(channels_[static_cast<size_t>(rank)]->peer()) != message.npos;
  };
  if (!names(culprit) && names(to)) culprit = to;
  return Lost(culprit, message);
}

absl::Status Group::Lost(int rank, std::string_view cause) {
  return End(absl::AbortedError(FormatRankFailure(GetName(rank), cause, GetName(rank_))));
}

absl::Status Group::End(absl::Status why) {
  status_ = std::move(why);
  Tell(status_, kTellSeconds);
  return status_;
}

// A peer that this message does not reach finds the connection closed or, if it is kept for a later
// generation, hears of the end from the membership.
void Group::Tell(const absl::Status& why, double seconds) {
  told_ = true;
  for (const auto& channel : channels_) {
    if (channel == nullptr) continue;
    channel->SendFailure(why, Deadline::After(seconds)).IgnoreError();
    if (!options_.retire) channel->Close();
  }
}

Deadline Group::NextDeadline() const { return Deadline::After(options_.timeout_seconds); }

}  // namespace muster::collective
