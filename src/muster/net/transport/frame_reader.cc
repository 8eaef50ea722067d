#include "muster/net/transport/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::net::transport {
namespace {

// A piece is small enough to stay in the core's cache between its checksum and its use, and for the
// peer to get room again soon.
constexpr size_t kPieceBytes = size_t{64} << 10;

}  // namespace

absl::StatusOr<bool> FrameReader::Open() {
  if (!open_) MUSTER_RETURN_IF_ERROR(PumpBetween().status());
  return open_;
}

absl::StatusOr<bool> FrameReader::Pump(
    absl::FunctionRef<void(ConstBytes part, size_t offset)> take) {
  if (part_ != Part::kPayload) return PumpBetween();
  MUSTER_ASSIGN_OR_RETURN(const ConstBytes there, stream_->Peek());
  size_t n = std::min({there.size(), payload_left_, kPieceBytes});
  if (n < payload_left_) n -= n % 4;
  if (n == 0) return false;
  const ConstBytes part = there.first(n);
  const size_t offset = taken_;
  Took(part);
  take(part, offset);
  stream_->Consume(n);
  if (part_ == Part::kTail) MUSTER_RETURN_IF_ERROR(PumpBetween().status());
  return true;
}

absl::StatusOr<bool> FrameReader::PumpInto(MutableBytes whole) {
  if (part_ != Part::kPayload) return PumpBetween();
  const MutableBytes wanted = whole.subspan(taken_, payload_left_);
  MUSTER_ASSIGN_OR_RETURN(const size_t n, stream_->Read(wanted));
  if (n == 0) return false;
  Took(wanted.first(n));
  if (part_ == Part::kTail) MUSTER_RETURN_IF_ERROR(PumpBetween().status());
  return true;
}

void FrameReader::Took(ConstBytes part) {
  if ((header_.flags & kFrameChecksum) != 0) crc_ = ExtendChecksum(crc_, part);
  taken_ += part.size();
  payload_left_ -= part.size();
  if (payload_left_ == 0) part_ = Part::kTail;
}

absl::StatusOr<bool> FrameReader::Gather(std::byte* to, size_t size) {
  while (have_ < size) {
    MUSTER_ASSIGN_OR_RETURN(const size_t n, stream_->Read({to + have_, size - have_}));
    if (n == 0) return false;
    have_ += n;
  }
  have_ = 0;
  return true;
}

absl::StatusOr<bool> FrameReader::PumpBetween() {
  bool moved = false;
  const bool was_open = open_;
  while (part_ != Part::kPayload) {
    const size_t had = have_;
    absl::StatusOr<bool> complete = false;
    absl::Status taken;
    switch (part_) {
      case Part::kHeader:
        complete = Gather(header_bytes_.data(), header_bytes_.size());
        if (complete.ok() && *complete) taken = ReadHeader();
        break;
      case Part::kTail:
        complete = Gather(tail_.data(), FrameTailSize(header_.payload_bytes));
        if (complete.ok() && *complete) taken = ReadTail();
        break;
      default:
        complete = Gather(reinterpret_cast<std::byte*>(failure_.data()), failure_.size());
        if (complete.ok() && *complete) taken = ReadFailure();
    }
    MUSTER_RETURN_IF_ERROR(complete.status());
    damaged_ = !taken.ok() && !peer_failed_;
    MUSTER_RETURN_IF_ERROR(taken);
    if (!*complete) return moved || have_ > had;
    moved = true;
    if (open_ != was_open) break;  // a message began or ended
  }
  return moved;
}

absl::Status FrameReader::ReadHeader() {
  absl::StatusOr<FrameHeader> header = DecodeFrameHeader(header_bytes_);
  if (!header.ok()) return Annotate(header.status(), StrCat("frame ", sequence_));
  MUSTER_RETURN_IF_ERROR(CheckOrder(*header));
  if (checksum_ && (header->flags & kFrameChecksum) == 0) {
    return absl::DataLossError(StrCat("frame ", header->sequence,
                                      " has no checksum, where both sides had agreed on them"));
  }
  ++sequence_;
  if (header->type == kFailureType) {
    failure_.resize(header->payload_bytes + FrameTailSize(header->payload_bytes));
    header_ = *header;
    part_ = Part::kFailure;
    return absl::OkStatus();
  }
  if (given_up_) {
    return absl::DataLossError(
        StrCat("frame ", header->sequence, " follows one that was given up, and is no failure"));
  }
  if (open_) {
    MUSTER_RETURN_IF_ERROR(CheckContinuation(*header));
  } else {
    taken_ = 0;
  }
  const bool more = (header->flags & kFrameMore) != 0;
  const uint64_t left = header->message_bytes - taken_;
  if (more ? header->payload_bytes >= left : header->payload_bytes != left) {
    return absl::DataLossError(StrCat("frame ", header->sequence, " has ", header->payload_bytes,
                                      " bytes where ", left, " are left of its message of ",
                                      header->message_bytes, more ? ", and says more follow" : ""));
  }
  header_ = *header;
  open_ = true;
  crc_ = 0;
  payload_left_ = header->payload_bytes;
  part_ = payload_left_ > 0 ? Part::kPayload : Part::kTail;
  return absl::OkStatus();
}

absl::Status FrameReader::CheckOrder(const FrameHeader& header) const {
  if (header.generation != generation_) {
    return absl::AbortedError(StrCat("fenced: the peer's frame is of generation ",
                                     header.generation, " and we are in generation ", generation_,
                                     ": the one with the older generation must join again"));
  }
  if (header.sequence != sequence_) {
    return absl::DataLossError(StrCat("frame ", header.sequence, " came where frame ", sequence_,
                                      " was due: one was lost or sent twice"));
  }
  return absl::OkStatus();
}

absl::Status FrameReader::CheckContinuation(const FrameHeader& header) const {
  if (header.type == header_.type && header.message_bytes == header_.message_bytes) {
    return absl::OkStatus();
  }
  return absl::DataLossError(StrCat("frame ", header.sequence, " of a message of type ",
                                    header.type, " and ", header.message_bytes,
                                    " bytes came within one of type ", header_.type, " and ",
                                    header_.message_bytes, " bytes"));
}

absl::Status FrameReader::ReadTail() {
  absl::StatusOr<FrameTrailer> trailer = DecodeFrameTail(header_.payload_bytes, tail_);
  if (!trailer.ok()) return Annotate(trailer.status(), StrCat("frame ", header_.sequence));
  part_ = Part::kHeader;
  if (trailer->given_up) {
    given_up_ = true;
    return absl::OkStatus();
  }
  const uint32_t crc = (header_.flags & kFrameChecksum) != 0 ? crc_ : 0;
  if (trailer->crc != crc) {
    return absl::DataLossError(
        StrCat("frame ", header_.sequence, ": checksum ", trailer->crc, " came with bytes of ", crc,
               ": they were damaged on their way, which TCP did not "
               "notice; the connection is given up, and made anew. Where it "
               "happens again, look at this machine's and the peer's network "
               "card, cable and memory"));
  }
  if ((header_.flags & kFrameMore) == 0) open_ = false;
  return absl::OkStatus();
}

absl::Status FrameReader::ReadFailure() {
  part_ = Part::kHeader;
  const size_t size = header_.payload_bytes;
  const std::string frame = StrCat("frame ", header_.sequence);
  const auto payload = std::as_bytes(std::span(failure_)).first(size);
  std::memcpy(tail_.data(), failure_.data() + size, FrameTailSize(size));
  absl::StatusOr<FrameTrailer> trailer = DecodeFrameTail(size, tail_);
  if (!trailer.ok()) return Annotate(trailer.status(), frame);
  const uint32_t crc = (header_.flags & kFrameChecksum) != 0 ? ExtendChecksum(0, payload) : 0;
  uint32_t code = 0;
  if (trailer->crc != crc || trailer->given_up || size < sizeof code) {
    return absl::DataLossError(StrCat(frame, ": a damaged failure"));
  }
  std::memcpy(&code, payload.data(), sizeof code);
  if (code < 1 || code > 16) code = static_cast<uint32_t>(absl::StatusCode::kUnknown);
  peer_failed_ = true;
  return absl::Status(static_cast<absl::StatusCode>(code),
                      ToAbsl(std::string_view(failure_).substr(4, size - 4)));
}

absl::StatusOr<bool> FrameReader::Renew(uint64_t generation, bool* begun) {
  peer_failed_ = false;
  if (part_ == Part::kPayload) return DropPayload();
  absl::StatusOr<bool> complete = false;
  absl::Status taken;
  switch (part_) {
    case Part::kHeader:
      complete = Gather(header_bytes_.data(), header_bytes_.size());
      if (complete.ok() && *complete) taken = DropHeader(generation);
      break;
    case Part::kTail:
      complete = Gather(tail_.data(), FrameTailSize(header_.payload_bytes));
      if (!complete.ok() || !*complete) break;
      part_ = Part::kHeader;
      *begun = renewing_;
      if (std::exchange(renewing_, false)) taken = EndRenewal(generation);
      break;
    default:
      complete = Gather(reinterpret_cast<std::byte*>(failure_.data()), failure_.size());
      if (complete.ok() && *complete) part_ = Part::kHeader;
  }
  damaged_ = !complete.ok() || !taken.ok();
  MUSTER_RETURN_IF_ERROR(taken);
  return complete;
}

absl::StatusOr<bool> FrameReader::DropPayload() {
  MUSTER_ASSIGN_OR_RETURN(const ConstBytes there, stream_->Peek());
  const size_t n = std::min(there.size(), payload_left_);
  stream_->Consume(n);
  payload_left_ -= n;
  if (payload_left_ == 0) part_ = Part::kTail;
  return n > 0;
}

absl::Status FrameReader::DropHeader(uint64_t generation) {
  MUSTER_ASSIGN_OR_RETURN(header_, DecodeFrameHeader(header_bytes_));
  renewing_ = header_.generation == generation && header_.type == kRenewalType &&
              header_.sequence == 0 && header_.message_bytes == 0;
  if (!renewing_ && header_.generation >= generation) {
    return absl::AbortedError(StrCat("the peer's frame is of generation ", header_.generation,
                                     ", where generation ", generation, " had to begin"));
  }
  payload_left_ = header_.payload_bytes;
  part_ = payload_left_ > 0 ? Part::kPayload : Part::kTail;
  return absl::OkStatus();
}

absl::Status FrameReader::EndRenewal(uint64_t generation) {
  MUSTER_ASSIGN_OR_RETURN(const FrameTrailer trailer, DecodeFrameTail(0, tail_));
  if (trailer.given_up || trailer.crc != 0) {
    return absl::AbortedError(StrCat("the peer has given up generation ", generation));
  }
  generation_ = generation;
  sequence_ = 1;
  open_ = given_up_ = false;
  taken_ = 0;
  return absl::OkStatus();
}

}  // namespace muster::net::transport
