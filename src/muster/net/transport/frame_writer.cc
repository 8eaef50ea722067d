#include "muster/net/transport/frame_writer.h"

#include <algorithm>
#include <utility>

namespace muster::net::transport {
namespace {

constexpr std::array<std::byte, 4096> kZeros = {};

// How much of a part of `size` bytes that begins at `begin` lies before `at`.
size_t GetGone(size_t at, size_t begin, size_t size) {
  return at > begin ? std::min(at - begin, size) : 0;
}

}  // namespace

void FrameWriter::Begin(uint16_t type, ConstBytes message) {
  open_ = true;
  type_ = type;
  message_ = message;
  framed_ = 0;
  NextFrame();
}

void FrameWriter::NextFrame() {
  const size_t left = message_.size() - framed_;
  payload_ = std::min(left, kMaxFramePayload);
  at_ = 0;
  FrameHeader header = {.type = type_,
                        .flags = 0,
                        .generation = generation_,
                        .sequence = sequence_++,
                        .message_bytes = message_.size(),
                        .payload_bytes = static_cast<uint32_t>(payload_)};
  if (payload_ < left) header.flags |= kFrameMore;
  if (checksum_) header.flags |= kFrameChecksum;
  header_ = EncodeFrameHeader(header);
  tail_ = EncodeFrameTail(
      payload_, {.crc = checksum_ ? ExtendChecksum(0, message_.subspan(framed_, payload_)) : 0});
}

size_t FrameWriter::payload_sent() const {
  return framed_ + GetGone(at_, kFrameHeaderBytes, payload_);
}

size_t FrameWriter::Pieces(std::array<ConstBytes, 3>* pieces) const {
  size_t count = 0;
  if (at_ < kFrameHeaderBytes) (*pieces)[count++] = ConstBytes(header_).subspan(at_);
  const size_t gone = GetGone(at_, kFrameHeaderBytes, payload_);
  if (gone < payload_ && zeros_) {
    const size_t some = std::min(kZeros.size(), payload_ - gone);
    (*pieces)[count++] = ConstBytes(kZeros).first(some);
    if (some < payload_ - gone) return count;
  } else if (gone < payload_) {
    (*pieces)[count++] = message_.subspan(framed_ + gone, payload_ - gone);
  }
  const size_t tail_gone = GetGone(at_, kFrameHeaderBytes + payload_, tail_bytes());
  (*pieces)[count++] = ConstBytes(tail_).first(tail_bytes()).subspan(tail_gone);
  return count;
}

absl::StatusOr<bool> FrameWriter::Pump() {
  if (!open_) return false;
  std::array<ConstBytes, 3> pieces;
  const size_t count = Pieces(&pieces);
  MUSTER_ASSIGN_OR_RETURN(const size_t went, stream_->Write({pieces.data(), count}));
  at_ += went;
  if (at_ == kFrameHeaderBytes + payload_ + tail_bytes()) FrameWritten();
  return went > 0;
}

void FrameWriter::FrameWritten() {
  framed_ += payload_;
  at_ = payload_ = 0;
  const bool abandoned = std::exchange(zeros_, false);
  if (!abandoned && framed_ < message_.size()) {
    NextFrame();
    return;
  }
  open_ = false;
  if (std::exchange(failure_waits_, false)) {
    Begin(kFailureType, std::as_bytes(std::span(failure_)));
  } else if (std::exchange(renewal_waits_, false)) {
    Begin(kRenewalType, {});
  }
}

void FrameWriter::Renew(uint64_t generation) {
  Abandon();
  failure_waits_ = false;
  generation_ = generation;
  sequence_ = 0;
  renewal_waits_ = open_;
  if (!open_) Begin(kRenewalType, {});
}

void FrameWriter::Abandon() {
  if (!open_ || zeros_) return;
  if (at_ == 0) {  // nothing of this frame has gone: it never was
    --sequence_;
    open_ = false;
  } else {
    // A trailer that has gone in part stays: the peer then has the whole frame as it was.
    if (at_ <= kFrameHeaderBytes + payload_) tail_ = EncodeFrameTail(payload_, {.given_up = true});
    zeros_ = true;
  }
  message_ = {};
}

void FrameWriter::BeginFailure(const absl::Status& why) {
  const auto code = static_cast<uint32_t>(why.code());
  failure_.assign(reinterpret_cast<const char*>(&code), sizeof code);
  failure_.append(ToStd(why.message()).substr(0, kMaxFailureBytes - sizeof code));
  renewal_waits_ = false;
  if (open_) {
    failure_waits_ = true;
  } else {
    Begin(kFailureType, std::as_bytes(std::span(failure_)));
  }
}

}  // namespace muster::net::transport
