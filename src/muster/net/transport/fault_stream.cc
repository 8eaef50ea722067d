#include "muster/net/transport/fault_stream.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "muster/process/descriptor.h"

namespace muster::net::transport {
namespace {

using process::Descriptor;

constexpr size_t kShortBytes = 16;

class FaultStream : public Stream {
 public:
  FaultStream(std::unique_ptr<Stream> stream, const FaultOptions& options, Descriptor timer,
              Descriptor never)
      : Stream(stream->peer()),
        stream_(std::move(stream)),
        options_(options),
        random_(options.seed),
        timer_(std::move(timer)),
        never_(std::move(never)) {
    set_wants_checksums(stream_->wants_checksums());
  }

  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override;
  absl::StatusOr<ConstBytes> Peek() override;
  void Consume(size_t n) override;
  PollWish Arm(bool read, bool write) override;
  void Disarm() override;
  void Close() override { stream_->Close(); }
  std::string binding() const override { return stream_->binding(); }

 private:
  bool Happens(double probability) {
    return probability > 0 && std::uniform_real_distribution<double>()(random_) < probability;
  }
  size_t Shorten(size_t n) {
    if (n == 0 || !Happens(options_.short_io)) return n;
    return std::min(n, 1 + static_cast<size_t>(random_() % kShortBytes));
  }
  void MayDelay();
  bool Delayed();
  bool stalled() const { return written_ >= options_.stall_at; }
  bool half_open() const { return written_ >= options_.half_open_at; }
  absl::StatusOr<size_t> WriteUpTo(std::span<const ConstBytes> pieces, size_t limit);

  const std::unique_ptr<Stream> stream_;
  const FaultOptions options_;
  std::mt19937_64 random_;
  const Descriptor timer_, never_;
  uint64_t written_ = 0, read_ = 0;
  bool delayed_ = false;
  bool held_back_ = false;  // the last Peek showed less than there was
  bool cut_short_ = false;  // the last Write took less than it could
  bool armed_ = false;      // the stream below
  std::vector<std::byte> flipped_;
};

void FaultStream::MayDelay() {
  if (!Happens(options_.delay)) return;
  itimerspec after = {};
  after.it_value.tv_sec = options_.delay_micros / 1'000'000;
  after.it_value.tv_nsec = options_.delay_micros % 1'000'000 * 1000L;
  delayed_ = timerfd_settime(timer_.get(), 0, &after, nullptr) == 0;
}

bool FaultStream::Delayed() {
  uint64_t expirations = 0;
  if (delayed_ && read(timer_.get(), &expirations, sizeof expirations) > 0) delayed_ = false;
  return delayed_;
}

absl::StatusOr<size_t> FaultStream::WriteUpTo(std::span<const ConstBytes> pieces, size_t limit) {
  std::array<ConstBytes, kMaxPieces> some;
  size_t count = 0;
  for (const ConstBytes piece : pieces) {
    if (limit == 0 || count == kMaxPieces) break;
    some[count++] = piece.first(std::min(piece.size(), limit));
    limit -= some[count - 1].size();
  }
  return stream_->Write({some.data(), count});
}

absl::StatusOr<size_t> FaultStream::Write(std::span<const ConstBytes> pieces) {
  cut_short_ = Delayed();  // the delay may be over when Arm is called
  if (stalled() || cut_short_) return 0;
  size_t wanted = 0;
  for (const ConstBytes piece : pieces) wanted += piece.size();
  if (half_open()) {
    written_ += wanted;
    return wanted;
  }
  const uint64_t next = std::min({options_.stall_at, options_.half_open_at, options_.cut_at});
  const size_t limit = Shorten(std::min<uint64_t>(wanted, next - written_));
  cut_short_ = limit < wanted;
  MUSTER_ASSIGN_OR_RETURN(const size_t went, WriteUpTo(pieces, limit));
  if (went < limit) cut_short_ = false;
  written_ += went;
  if (written_ >= options_.cut_at) stream_->Close();
  MayDelay();
  return went;
}

absl::StatusOr<ConstBytes> FaultStream::Peek() {
  held_back_ = Delayed();
  if (stalled() || half_open() || held_back_) return ConstBytes();
  MUSTER_ASSIGN_OR_RETURN(const ConstBytes all, stream_->Peek());
  const ConstBytes some = all.first(Shorten(all.size()));
  held_back_ = some.size() < all.size();
  if (options_.flip_at < read_ || options_.flip_at - read_ >= some.size()) return some;
  const size_t front = reinterpret_cast<uintptr_t>(some.data()) % 8;  // operator new gives 16
  flipped_.resize(front + some.size());
  std::memcpy(flipped_.data() + front, some.data(), some.size());
  flipped_[front + options_.flip_at - read_] ^= std::byte{1};
  return ConstBytes(flipped_).subspan(front);
}

void FaultStream::Consume(size_t n) {
  read_ += n;
  stream_->Consume(n);
  MayDelay();
}

PollWish FaultStream::Arm(bool read, bool write) {
  if (stalled() || (half_open() && !write)) return {.fd = never_.get(), .events = POLLIN};
  if (half_open()) return {};
  if (Delayed()) return {.fd = timer_.get(), .events = POLLIN};
  if ((read && held_back_) || (write && cut_short_)) return {};
  armed_ = true;
  return stream_->Arm(read, write);
}

void FaultStream::Disarm() {
  if (std::exchange(armed_, false)) stream_->Disarm();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> NewFaultStream(std::unique_ptr<Stream> stream,
                                                       const FaultOptions& options) {
  Descriptor timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  Descriptor never(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!timer.valid() || !never.valid()) return ErrnoStatus(errno, "make a stream with faults");
  return std::make_unique<FaultStream>(std::move(stream), options, std::move(timer),
                                       std::move(never));
}

}  // namespace muster::net::transport
