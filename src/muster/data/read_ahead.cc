#include "muster/data/read_ahead.h"

#include <algorithm>
#include <utility>

#include "muster/base/clock.h"
#include "muster/base/cpu_time.h"

namespace muster::data {
namespace {

// A read that waits no longer than this costs less than handing its chunk to another thread.
constexpr double kQuickSeconds = 0.5e-3;
// After this many quick reads in a row the consumer reads by itself.
constexpr int64_t kQuickReads = 8;

}  // namespace

// Counts the bad records of each piece when it is handed out.
class ReadAhead::CountingStream : public ChunkStream {
 public:
  CountingStream(ReadAhead& owner, size_t chunk, std::unique_ptr<ChunkStream> pieces)
      : owner_(owner), chunk_(chunk), pieces_(std::move(pieces)) {}
  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    MUSTER_RETURN_IF_ERROR(owner_.CheckRuns());
    MUSTER_ASSIGN_OR_RETURN(auto piece, pieces_->Next());
    if (piece != nullptr) MUSTER_RETURN_IF_ERROR(owner_.source_.CountBad(chunk_, *piece));
    return piece;
  }

 private:
  ReadAhead& owner_;
  const size_t chunk_;
  const std::unique_ptr<ChunkStream> pieces_;
};

namespace {

// A stream with a single piece, the chunk that was read before.
class ReadStream : public ChunkStream {
 public:
  explicit ReadStream(std::shared_ptr<const Chunk> chunk) : chunk_(std::move(chunk)) {}
  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    return std::exchange(chunk_, nullptr);
  }

 private:
  std::shared_ptr<const Chunk> chunk_;
};

}  // namespace

ReadAhead::ReadAhead(const RecordSource& source, int chunks_ahead)
    : source_(source), chunks_ahead_(static_cast<size_t>(chunks_ahead)) {}

ReadAhead::~ReadAhead() { Stop(); }

void ReadAhead::Begin(std::vector<uint32_t> order) {
  std::lock_guard lock(mutex_);
  slots_.clear();
  order_ = std::move(order);
}

void ReadAhead::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    slots_.clear();
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  done_.notify_all();
}

absl::Status ReadAhead::CheckRuns() const {
  std::lock_guard lock(mutex_);
  return stopped_ ? absl::CancelledError("reading the data was stopped") : absl::OkStatus();
}

bool ReadAhead::CanBeReadAhead(uint32_t ordinal) const {
  return ordinal < order_.size() && !source_.chunks()[order_[ordinal]].compressed;
}

absl::StatusOr<std::shared_ptr<const Chunk>> ReadAhead::Read(uint32_t ordinal) {
  MUSTER_ASSIGN_OR_RETURN(auto chunk, Fetch(ordinal));
  MUSTER_RETURN_IF_ERROR(source_.CountBad(order_[ordinal], *chunk));
  return chunk;
}

absl::StatusOr<std::shared_ptr<const Chunk>> ReadAhead::ReadAlone(uint32_t ordinal) {
  MUSTER_RETURN_IF_ERROR(CheckRuns());
  MUSTER_ASSIGN_OR_RETURN(auto chunk, source_.Read(order_[ordinal]));
  MUSTER_RETURN_IF_ERROR(source_.CountBad(order_[ordinal], *chunk));
  return chunk;
}

absl::StatusOr<std::unique_ptr<ChunkStream>> ReadAhead::Stream(uint32_t ordinal) {
  if (chunks_ahead_ > 0 && CanBeReadAhead(ordinal)) {
    MUSTER_ASSIGN_OR_RETURN(auto chunk, Read(ordinal));
    return std::make_unique<ReadStream>(std::move(chunk));
  }
  const size_t chunk = order_[ordinal];
  MUSTER_RETURN_IF_ERROR(ClaimSlot(ordinal, false).status());
  MUSTER_ASSIGN_OR_RETURN(auto pieces, source_.Stream(chunk));
  return std::make_unique<CountingStream>(*this, chunk, std::move(pieces));
}

absl::StatusOr<std::shared_ptr<const Chunk>> ReadAhead::Fetch(uint32_t ordinal) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<Slot> slot, ClaimSlot(ordinal, true));
  if (slot == nullptr) return ReadMeasured(order_[ordinal]);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return slot->state == Slot::State::kDone || stopped_; });
  if (stopped_) return absl::CancelledError("reading the data was stopped");
  return std::move(slot->result);
}

absl::StatusOr<std::shared_ptr<ReadAhead::Slot>> ReadAhead::ClaimSlot(uint32_t ordinal,
                                                                      bool by_read) {
  std::shared_ptr<Slot> taken;
  size_t planned = 0;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return absl::CancelledError("reading the data was stopped");
    slots_.erase(slots_.begin(), slots_.lower_bound(ordinal));
    if (const auto found = slots_.find(ordinal); found != slots_.end()) {
      // If no thread has begun to read the chunk, the consumer reads it itself.
      if (found->second->state != Slot::State::kWaiting) taken = found->second;
      slots_.erase(found);
    }
    if (taken == nullptr && by_read) source_.WillRead(order_[ordinal]);
    const size_t ahead = quick_reads_ < kQuickReads ? chunks_ahead_ : 0;
    for (uint32_t next = ordinal + 1; next <= ordinal + ahead; ++next) {
      if (!CanBeReadAhead(next) || slots_.contains(next)) continue;
      slots_.emplace(next, std::make_shared<Slot>(Slot{.chunk = order_[next]}));
      ++planned;
    }
    while (planned > 0 && threads_.size() < chunks_ahead_) {
      threads_.emplace_back([this](const std::stop_token& stop) { ReadSlots(stop); });
    }
  }
  // Each new chunk needs at most one more thread, since a thread looks for more work before it
  // waits.
  for (; planned > 0; --planned) planned_.notify_one();
  return taken;
}

absl::StatusOr<std::shared_ptr<const Chunk>> ReadAhead::ReadMeasured(size_t chunk) {
  const SystemClock clock;
  const double cpu = ThreadCpuSeconds();
  const int64_t start = clock.MonotonicNanos();
  auto result = source_.Read(chunk);
  const double seconds = static_cast<double>(clock.MonotonicNanos() - start) / 1e9;
  const double waited = seconds - (ThreadCpuSeconds() - cpu);
  if (waited > kQuickSeconds) {
    quick_reads_ = 0;
  } else {
    ++quick_reads_;
  }
  return result;
}

std::shared_ptr<ReadAhead::Slot> ReadAhead::FindWaiting() const {
  for (const auto& [unused, slot] : slots_) {
    if (slot->state == Slot::State::kWaiting) return slot;
  }
  return nullptr;
}

void ReadAhead::ReadSlots(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    std::shared_ptr<Slot> slot;
    if (!planned_.wait(lock, stop, [&] { return (slot = FindWaiting()) != nullptr; })) return;
    slot->state = Slot::State::kReading;
    source_.WillRead(slot->chunk);
    lock.unlock();
    auto result = ReadMeasured(slot->chunk);
    lock.lock();
    slot->result = std::move(result);
    slot->state = Slot::State::kDone;
    done_.notify_all();
  }
}

}  // namespace muster::data
