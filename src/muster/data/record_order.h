// RecordOrder: the order of an epoch's records. The implementations are file order and the chunked
// shuffle (docs/data.md).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/read_ahead.h"
#include "muster/data/reader.h"
#include "muster/data/source.h"

namespace muster::data {

struct Pick {
  const Chunk* chunk;
  uint32_t record;
};

// The order of one epoch. One owner thread.
class RecordOrder {
 public:
  virtual ~RecordOrder() = default;
  // Appends up to `count` next records to *picks, and the objects that keep them in memory to
  // *held. Appends none only at the end of the epoch.
  virtual absl::Status Next(size_t count, std::vector<Pick>* picks,
                            std::vector<std::shared_ptr<const Chunk>>* held) = 0;
  // Sets emitted, next_ordinal and open.
  virtual void Save(Position* position) const = 0;
};

// Begin an epoch of `chunks`, which reads `source`; both must outlive the result. `start` is null
// at the beginning of the epoch.
absl::StatusOr<std::unique_ptr<RecordOrder>> NewFileOrder(const RecordSource& source,
                                                          const Position* start, ReadAhead& chunks);
absl::StatusOr<std::unique_ptr<RecordOrder>> NewShuffledOrder(const RecordSource& source,
                                                              uint64_t seed, int64_t epoch,
                                                              int open_chunks,
                                                              const Position* start,
                                                              ReadAhead& chunks);

}  // namespace muster::data
