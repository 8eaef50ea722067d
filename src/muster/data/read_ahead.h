// ReadAhead: hands out the chunks of an epoch in their order, and reads the next ones on separate
// threads while the current ones are used. The order is known in advance, so that results do not
// depend on timing: the chunks, their errors and the counts of bad records come in the same order
// for any number of chunks ahead.
//
// Reading ahead only pays for reads that wait: while reads come from memory, as those of local
// files usually do, the consumer reads each chunk when it needs it, on the processor that then uses
// it. Each read is measured, and after one that has waited the next ones are read ahead again.
//
// Memory: at most `chunks_ahead` chunks in addition to those that the consumer holds, each of about
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

// Used by one consumer thread; any thread may call Stop.
class ReadAhead {
 public:
  // `source` must outlive this object. With chunks_ahead = 0, or while there is nothing to read
  // ahead, there are no threads, and chunks are read when they are requested.
  ReadAhead(const RecordSource& source, int chunks_ahead);
  // Waits for the reads in progress, each of which ends by the file system's own deadline at the
  // latest. Reads that have not begun are dropped.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Begins an epoch, which uses the chunks in this order.
  void Begin(std::vector<uint32_t> order);
  const std::vector<uint32_t>& order() const { return order_; }

  // Returns the chunk order()[ordinal]; those after it are read meanwhile. Ordinals must ascend.
  // Counts the chunk's bad records (RecordSource::CountBad). CANCELLED after Stop.
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(uint32_t ordinal);
  // Reads any chunk of the order, and nothing ahead of it; used to continue from a position.
  absl::StatusOr<std::shared_ptr<const Chunk>> ReadAlone(uint32_t ordinal);
  // Returns the records of the chunk that Read would return. A compressed chunk, and every chunk if
  // nothing is read ahead, comes in pieces, so that memory stays constant. This object must outlive
  // the stream.
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(uint32_t ordinal);

  // Makes Read (even if it waits for a thread) and the streams return CANCELLED. Reads in progress,
  // including the consumer's own, are not interrupted.
  void Stop();

 private:
  class CountingStream;
  struct Slot {
    enum class State { kWaiting, kReading, kDone };
    const uint32_t chunk;
    State state = State::kWaiting;
    absl::StatusOr<std::shared_ptr<const Chunk>> result = nullptr;
  };

  // Plans the chunks after `ordinal`, and claims the chunk of `ordinal` if it was planned and its
  // reading has begun. Otherwise the caller reads it, by Read if it says so.
  absl::StatusOr<std::shared_ptr<Slot>> ClaimSlot(uint32_t ordinal, bool by_read);
  absl::StatusOr<std::shared_ptr<const Chunk>> Fetch(uint32_t ordinal);
  // Reads the chunk on this thread, and counts whether the read waited.
  absl::StatusOr<std::shared_ptr<const Chunk>> ReadMeasured(size_t chunk);
  absl::Status CheckRuns() const;
  bool CanBeReadAhead(uint32_t ordinal) const;
  std::shared_ptr<Slot> FindWaiting() const;
  void ReadSlots(const std::stop_token& stop);

  const RecordSource& source_;
  const size_t chunks_ahead_;
  std::vector<uint32_t> order_;
  mutable std::mutex mutex_;
  std::condition_variable_any planned_;  // tells threads that there is a chunk to read, or the end
  std::condition_variable done_;         // tells the consumer that a chunk was read, or the end
  std::map<uint32_t, std::shared_ptr<Slot>> slots_;  // by ordinal; at most chunks_ahead_
  bool stopped_ = false;
  std::atomic<int64_t> quick_reads_{0};  // since the last read that waited
  std::vector<std::jthread> threads_;    // last: they end before what they use
};

}  // namespace muster::data
