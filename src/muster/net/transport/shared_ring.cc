#include "muster/net/transport/shared_ring.h"

#include <algorithm>
#include <cstring>

namespace muster::net::transport {
namespace {

// So much is copied before the reader may see it: small enough that both work at once, large enough
// that the lines with the positions seldom travel.
constexpr size_t kSliceBytes = size_t{32} << 10;
// The bytes that Peek has left when it looks for more.
constexpr size_t kWorthALook = 8;

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free &&
              std::atomic_ref<uint32_t>::is_always_lock_free);

// A position is published and then the other's flag read; the other sets its flag and then reads
// the position. One of the two must see the other's store: both are sequentially consistent.
void Announce(uint64_t* position, uint64_t value, uint32_t* sleeps, bool* bell) {
  std::atomic_ref(*position).store(value, std::memory_order_seq_cst);
  std::atomic_ref flag(*sleeps);
  if (flag.load(std::memory_order_seq_cst) != 0) {
    flag.store(0, std::memory_order_relaxed);
    *bell = true;
  }
}

bool MovedSince(uint64_t* position, uint64_t seen, uint32_t* sleeps) {
  std::atomic_ref(*sleeps).store(1, std::memory_order_seq_cst);
  return std::atomic_ref(*position).load(std::memory_order_seq_cst) != seen;
}

void Awake(uint32_t* sleeps) { std::atomic_ref(*sleeps).store(0, std::memory_order_relaxed); }

}  // namespace

absl::StatusOr<size_t> RingWriter::Write(std::span<const ConstBytes> pieces, bool* bell) {
  size_t wanted = 0;
  for (const ConstBytes piece : pieces) wanted += piece.size();
  size_t room = capacity_ - (written_ - read_);
  if (room < wanted) {
    const uint64_t read = std::atomic_ref(control_->read).load(std::memory_order_acquire);
    if (read - read_ > written_ - read_) {
      return absl::DataLossError(StrCat("shared memory: the reader's position is ", read,
                                        ", which is not between ", read_, " and ", written_));
    }
    read_ = read;
    room = capacity_ - (written_ - read_);
  }
  const uint64_t end = written_ + std::min(room, wanted);
  const uint64_t begin = written_;
  for (ConstBytes piece : pieces) {
    while (!piece.empty() && written_ < end && !*bell) {
      const size_t place = written_ & (capacity_ - 1);
      const size_t slice = kSliceBytes - (written_ - published_);
      const size_t n = std::min<uint64_t>({piece.size(), end - written_, capacity_ - place, slice});
      std::memcpy(data_ + place, piece.data(), n);
      piece = piece.subspan(n);
      written_ += n;
      if (written_ - published_ == kSliceBytes) Publish(bell);
    }
  }
  if (written_ != published_) Publish(bell);
  return written_ - begin;
}

void RingWriter::Publish(bool* bell) {
  published_ = written_;
  Announce(&control_->written, written_, &control_->reader_sleeps, bell);
}

bool RingWriter::Arm() { return MovedSince(&control_->read, read_, &control_->writer_sleeps); }

void RingWriter::Disarm() { Awake(&control_->writer_sleeps); }

absl::StatusOr<ConstBytes> RingReader::Peek() {
  if (written_ - read_ < kWorthALook) {
    const uint64_t written = std::atomic_ref(control_->written).load(std::memory_order_acquire);
    // The position went backwards or further than the ring is long; as unsigned numbers, both are
    // too far.
    if (written - read_ > capacity_ || written - read_ < written_ - read_) {
      return absl::DataLossError(StrCat("shared memory: the writer's position is ", written,
                                        ", which is not within ", capacity_, " bytes of ",
                                        written_));
    }
    written_ = written;
  }
  const size_t place = read_ & (capacity_ - 1);
  return ConstBytes(data_ + place, std::min<uint64_t>(written_ - read_, capacity_ - place));
}

void RingReader::Consume(size_t n, bool* bell) {
  read_ += n;
  if (read_ - published_ >= capacity_ / 8) Publish(bell);
}

void RingReader::Publish(bool* bell) {
  published_ = read_;
  Announce(&control_->read, read_, &control_->writer_sleeps, bell);
}

bool RingReader::Arm(bool* bell) {
  if (published_ != read_) Publish(bell);
  return MovedSince(&control_->written, written_, &control_->reader_sleeps);
}

void RingReader::Disarm() { Awake(&control_->reader_sleeps); }

}  // namespace muster::net::transport
