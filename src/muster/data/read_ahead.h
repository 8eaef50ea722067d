// ReadAhead: gives the chunks of an epoch in their order, and reads the next ones on threads of its
// own while the current ones are used. The order is known in advance, so that what is read does not
// depend on timing: the chunks, their errors and the counts of bad records come in the same order
// with any number of chunks ahead.
//
// Only reads that wait are worth it: while reads come from memory, as those of local files usually
// do, the consumer reads each chunk when it needs it, on the processor that then uses it. Each read
// is measured, and one that waits makes the next ones be read ahead again.
//
// Memory: at most `chunks_ahead` chunks besides those that the consumer holds, each of about
// kChunkBytes. Compressed chunks, which may be of any size, are not read ahead.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"

namespace muster::data {

// The consumer is one thread; Stop may be called by any.
class ReadAhead {
 public:
  // `source` must outlive this object. With chunks_ahead = 0, or as long as there is nothing to
  // read ahead, no thread exists and chunks are read when they are asked for.
  ReadAhead(const RecordSource& source, int chunks_ahead);
  // Waits for reads that are under way, each of which ends when the file system's own deadline for
  // it has passed; those that have not begun are dropped.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Begins an epoch, which uses the chunks in this order.
  void Begin(std::vector<uint32_t> order);
  const std::vector<uint32_t>& order() const { return order_; }

  // The chunk order()[ordinal]; those after it are read meanwhile. Ordinals ascend. Counts the
  // chunk's bad records (RecordSource::CountBad). CANCELLED after Stop.
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(uint32_t ordinal);
  // Reads any chunk of the order, and nothing ahead of it: to continue at a position.
  absl::StatusOr<std::shared_ptr<const Chunk>> ReadAlone(uint32_t ordinal);
  // The records of the chunk as Read gives them. A compressed chunk, and each chunk if nothing is
  // read ahead, is returned in pieces, so that memory stays constant. *this must outlive the
  // stream.
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(uint32_t ordinal);

  // Makes Read, also one that waits for a thread, and the streams return CANCELLED; reads that are
  // under way, the consumer's own among them, end on their own.
  void Stop();

 private:
  class CountingStream;
  struct Slot {
    enum class State { kWaiting, kReading, kDone };
    const uint32_t chunk;
    State state = State::kWaiting;
    absl::StatusOr<std::shared_ptr<const Chunk>> result = nullptr;
  };

  // Plans the chunks after `ordinal` and takes the one of `ordinal`, if it was planned and its
  // reading has begun.
  absl::StatusOr<std::shared_ptr<Slot>> ClaimSlot(uint32_t ordinal);
  absl::StatusOr<std::shared_ptr<const Chunk>> Fetch(uint32_t ordinal);
  // Reads it on this thread, and counts whether the read waited.
  absl::StatusOr<std::shared_ptr<const Chunk>> ReadMeasured(size_t chunk);
  absl::Status CheckRuns() const;
  bool CanBeReadAhead(uint32_t ordinal) const;
  std::shared_ptr<Slot> FindWaiting() const;
  void ReadSlots(const std::stop_token& stop);

  const RecordSource& source_;
  const size_t chunks_ahead_;
  std::vector<uint32_t> order_;
  mutable std::mutex mutex_;
  std::condition_variable_any planned_;  // for threads: a chunk is to be read, or the end
  std::condition_variable done_;         // for the consumer: a chunk is read, or the end
  std::map<uint32_t, std::shared_ptr<Slot>> slots_;  // by ordinal; at most chunks_ahead_
  bool stopped_ = false;
  std::atomic<int64_t> quick_reads_{0};  // since the last one that waited
  std::vector<std::jthread> threads_;    // last: end before what they use
};

}  // namespace muster::data
