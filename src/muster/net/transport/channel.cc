#include "muster/net/transport/channel.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "muster/net/transport/link_watch.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using process::Deadline;

constexpr int kDefaultSpinMicros = 150;
// The time between two looks at the clock while bytes keep moving.
constexpr int kStepsBetweenClocks = 64;

ChannelOptions WithChecksums(ChannelOptions options, const Stream& stream) {
  options.checksum |= stream.wants_checksums();
  return options;
}

std::string PeerName(const std::string& name, const std::string& where) {
  return name.empty() ? where : StrCat(name, " (", where, ")");
}

absl::Status WrongMessage(const FrameReader& reader, const std::string& due) {
  return absl::DataLossError(StrCat("a message of type ", reader.type(), " and ",
                                    reader.message_bytes(), " bytes came where one ", due,
                                    " was due: the peers do not do the same"));
}

}  // namespace

int DefaultSpinMicros() {
  // Of the machine: a rank that is bound to one core waits for one on another.
  return sysconf(_SC_NPROCESSORS_ONLN) >= 2 ? kDefaultSpinMicros : 0;
}

// One call of Send, Receive or Exchange: sends what `to`'s writer has begun while `step` takes what
// comes from `from`. Either may be null.
class ExchangeLoop {
 public:
  // Says what moved (true: something) and sets *done with the last byte.
  using Step = absl::FunctionRef<absl::StatusOr<bool>(FrameReader& reader, bool* done)>;

  ExchangeLoop(const char* what, Channel* to, Channel* from, Deadline deadline,
               const Interrupt& interrupt)
      : what_(what), to_(to), from_(from), deadline_(deadline), interrupt_(interrupt) {}

  absl::Status Run(Step step) {
    const absl::Status status = Loop(step);
    if (status.ok()) return status;
    if (to_ != nullptr) to_->writer_.Abandon();
    // If nothing moved, the call may be made again; a peer that has closed stays closed.
    if (moved_ || gone_) {
      if (to_ != nullptr) Break(to_, status);
      if (from_ != nullptr) Break(from_, status);
    }
    return status;
  }

 private:
  absl::Status Loop(Step step);
  absl::StatusOr<bool> Turn(Step step);
  absl::Status Sleep();
  absl::Status LinkBroken(const absl::Status& why);
  absl::Status SendFailed(const absl::Status& why);
  absl::Status ReceiveFailed(const absl::Status& why);
  absl::Status Late() const;

  bool sending() const { return to_ != nullptr && !to_->writer_.done(); }
  bool receiving() const { return from_ != nullptr && !received_; }
  static void Break(Channel* channel, const absl::Status& why) {
    if (channel->broken_.ok()) channel->broken_ = why;
  }
  int SpinMicros() const {
    const Channel* const one = from_ != nullptr ? from_ : to_;
    return one->options_.spin_micros;
  }

  const char* const what_;
  Channel* const to_;
  Channel* const from_;
  const Deadline deadline_;
  const Interrupt& interrupt_;
  bool received_ = false;
  bool moved_ = false;
  bool gone_ = false;
};

absl::Status ExchangeLoop::Loop(Step step) {
  Spin spin(SpinMicros());
  for (int steps = 1; sending() || receiving(); ++steps) {
    if (interrupt_.is_set()) return interrupt_.status();
    MUSTER_ASSIGN_OR_RETURN(const bool moved, Turn(step));
    if (moved) {
      moved_ = true;
      interrupt_.NoteMove();
      spin.Reset();
      if (steps % kStepsBetweenClocks == 0 && deadline_.expired()) return Late();
    } else if (!spin.Again()) {
      MUSTER_RETURN_IF_ERROR(Sleep());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ExchangeLoop::Turn(Step step) {
  bool moved = false;
  if (sending()) {
    const absl::StatusOr<bool> sent = to_->writer_.Pump();
    if (!sent.ok()) return SendFailed(sent.status());
    moved = *sent;
  }
  if (receiving()) {
    const absl::StatusOr<bool> got = step(from_->reader_, &received_);
    if (!got.ok()) return ReceiveFailed(got.status());
    moved |= *got || received_;
  }
  return moved;
}

absl::Status ExchangeLoop::Sleep() {
  std::array<Awaited, 2> awaited;
  size_t count = 0;
  if (sending()) awaited[count++] = {.stream = to_->stream_.get(), .write = true};
  if (receiving()) {
    if (count > 0 && to_ == from_) {
      awaited[0].read = true;
    } else {
      awaited[count++] = {.stream = from_->stream_.get(), .read = true};
    }
  }
  absl::Status status = WaitFor({awaited.data(), count}, deadline_, interrupt_);
  if (interrupt_.is_set()) return status;
  if (absl::IsDeadlineExceeded(status)) status = Late();
  if (absl::IsUnavailable(status)) status = LinkBroken(status);
  return status;
}

// The peer that is named in errors: the one to which or from which bytes move.
absl::Status ExchangeLoop::LinkBroken(const absl::Status& why) {
  gone_ = true;
  const auto is_broken = [](const Channel& channel) {
    const PollWish wish = channel.stream_->Arm(/*read=*/true, /*write=*/false);
    channel.stream_->Disarm();
    return !CheckLink(wish.fd).ok();
  };
  if (receiving() && is_broken(*from_)) return Annotate(why, StrCat(what_, " from ", from_->peer_));
  return Annotate(why, StrCat(what_, " to ", (sending() ? to_ : from_)->peer_));
}

absl::Status ExchangeLoop::Late() const {
  std::string text = StrCat(what_, ": the deadline passed");
  if (to_ != nullptr) {
    absl::StrAppend(&text, sending() ? "; " : "; all sent: ", sending() ? "still sending to " : "",
                    to_->peer_);
    if (sending()) absl::StrAppend(&text, " (", to_->writer_.payload_sent(), " bytes went)");
  }
  if (receiving()) {
    const FrameReader& reader = from_->reader_;
    absl::StrAppend(&text, "; still waiting for ", from_->peer_, " (",
                    reader.open() ? reader.received() : 0, " bytes came)");
  }
  return absl::DeadlineExceededError(text);
}

// A peer that has closed may have said why before; then that is the error.
absl::Status ExchangeLoop::SendFailed(const absl::Status& why) {
  gone_ = true;
  if (to_->broken_.ok()) {
    const auto drop = [](ConstBytes, size_t) {};
    FrameReader& reader = to_->reader_;
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more && !deadline_.expired()) {
      more = reader.Open();
      if (more.ok() && *more) more = reader.Pump(drop);
    }
    if (reader.peer_failed()) return more.status();
  }
  return Annotate(why, StrCat(what_, " to ", to_->peer_));
}

absl::Status ExchangeLoop::ReceiveFailed(const absl::Status& why) {
  gone_ = true;
  if (from_->reader_.peer_failed()) return why;
  return Annotate(why, StrCat(what_, " from ", from_->peer_));
}

Channel::Channel(std::unique_ptr<Stream> stream, ChannelOptions options)
    : stream_(std::move(stream)),
      options_(WithChecksums(std::move(options), *stream_)),
      peer_(PeerName(options_.peer, stream_->peer())),
      writer_(stream_.get(), options_.generation, options_.checksum),
      reader_(stream_.get(), options_.generation, options_.checksum) {}

absl::Status Channel::Usable() const {
  if (broken_.ok()) return broken_;
  return Annotate(broken_, StrCat("the channel to ", peer_, " broke before"));
}

absl::Status Channel::Renew(uint64_t generation, Deadline deadline, const Interrupt& interrupt) {
  if (reader_.damaged()) return Annotate(absl::DataLossError("its frames are damaged"), peer_);
  broken_ = absl::AbortedError(StrCat("generation ", options_.generation, " is over"));
  writer_.Renew(generation);
  const auto step = [&](FrameReader& reader, bool* done) { return reader.Renew(generation, done); };
  MUSTER_RETURN_IF_ERROR(
      ExchangeLoop("renew the connection", this, this, deadline, interrupt).Run(step));
  options_.generation = generation;
  broken_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status Channel::Send(uint16_t type, ConstBytes message, Deadline deadline,
                           const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(Usable());
  writer_.Begin(type, message);
  return ExchangeLoop("send", this, nullptr, deadline, interrupt).Run([](FrameReader&, bool*) {
    return false;
  });
}

absl::StatusOr<Message> Channel::Receive(Deadline deadline, const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(Usable());
  Message message;
  bool opened = false;
  const auto step = [&](FrameReader& reader, bool* done) -> absl::StatusOr<bool> {
    if (!opened) {
      MUSTER_ASSIGN_OR_RETURN(opened, reader.Open());
      if (!opened) return false;
      if (reader.message_bytes() > options_.max_message_bytes) {
        return absl::DataLossError(StrCat("a message of ", reader.message_bytes(),
                                          " bytes, where at most ", options_.max_message_bytes,
                                          " are taken"));
      }
      message.type = reader.type();
      message.size = reader.message_bytes();
      message.data = std::make_unique_for_overwrite<std::byte[]>(message.size);
    }
    MUSTER_ASSIGN_OR_RETURN(const bool moved, reader.PumpInto({message.data.get(), message.size}));
    *done = !reader.open();
    return moved;
  };
  MUSTER_RETURN_IF_ERROR(ExchangeLoop("receive", nullptr, this, deadline, interrupt).Run(step));
  return message;
}

absl::Status Channel::Expect(Expected expected, Channel* to, Channel& from, Pump pump,
                             Deadline deadline, const Interrupt& interrupt) {
  const auto step = [&](FrameReader& reader, bool* done) -> absl::StatusOr<bool> {
    MUSTER_ASSIGN_OR_RETURN(const bool opened, reader.Open());
    if (!opened) return false;
    if (reader.type() != expected.type || reader.message_bytes() != expected.bytes) {
      return WrongMessage(reader,
                          StrCat("of type ", expected.type, " and ", expected.bytes, " bytes"));
    }
    MUSTER_ASSIGN_OR_RETURN(const bool moved, pump(reader));
    *done = !reader.open();
    return moved;
  };
  return ExchangeLoop(to == nullptr ? "receive" : "exchange", to, &from, deadline, interrupt)
      .Run(step);
}

absl::Status Channel::Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from,
                               size_t in_bytes, Take take, Deadline deadline,
                               const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(to.Usable());
  MUSTER_RETURN_IF_ERROR(from.Usable());
  to.writer_.Begin(type, out);
  return Expect(
      {type, in_bytes}, &to, from, [&](FrameReader& reader) { return reader.Pump(take); }, deadline,
      interrupt);
}

absl::Status Channel::Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from,
                               MutableBytes in, Deadline deadline, const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(to.Usable());
  MUSTER_RETURN_IF_ERROR(from.Usable());
  to.writer_.Begin(type, out);
  return Expect(
      {type, in.size()}, &to, from, [&](FrameReader& reader) { return reader.PumpInto(in); },
      deadline, interrupt);
}

absl::Status Channel::Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from, Room room,
                               Deadline deadline, const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(to.Usable());
  MUSTER_RETURN_IF_ERROR(from.Usable());
  to.writer_.Begin(type, out);
  std::optional<MutableBytes> in;
  const auto step = [&](FrameReader& reader, bool* done) -> absl::StatusOr<bool> {
    MUSTER_ASSIGN_OR_RETURN(const bool opened, reader.Open());
    if (!opened) return false;
    if (reader.type() != type) return WrongMessage(reader, StrCat("of type ", type));
    if (!in) {
      MUSTER_ASSIGN_OR_RETURN(in, room(reader.message_bytes()));
    }
    MUSTER_ASSIGN_OR_RETURN(const bool moved, reader.PumpInto(*in));
    *done = !reader.open();
    return moved;
  };
  return ExchangeLoop("exchange", &to, &from, deadline, interrupt).Run(step);
}

absl::Status Channel::ReceiveParts(uint16_t type, size_t bytes, Take take, Deadline deadline,
                                   const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(Usable());
  return Expect(
      {type, bytes}, nullptr, *this, [&](FrameReader& reader) { return reader.Pump(take); },
      deadline, interrupt);
}

absl::Status Channel::ReceiveInto(uint16_t type, MutableBytes in, Deadline deadline,
                                  const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(Usable());
  return Expect(
      {type, in.size()}, nullptr, *this, [&](FrameReader& reader) { return reader.PumpInto(in); },
      deadline, interrupt);
}

void Channel::LookForClose() {
  stream_->Arm(/*read=*/true, /*write=*/false);
  stream_->Disarm();
}

absl::Status Channel::SendFailure(const absl::Status& why, Deadline deadline) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Interrupt> never, Interrupt::Create());
  writer_.Abandon();
  writer_.BeginFailure(why);
  const absl::Status sent = ExchangeLoop("tell of the failure", this, nullptr, deadline, *never)
                                .Run([](FrameReader&, bool*) { return false; });
  if (broken_.ok()) broken_ = why;
  return sent;
}

}  // namespace muster::net::transport
