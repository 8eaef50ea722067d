// BatchReader: source -> (shuffle) -> decode -> batches of Columns, with a position that can be
// saved between any two batches and continued exactly.
//
// Shuffle (docs/data.md): chunks come in a seeded order, and the records inside each in a seeded
// permutation. `open_chunks` chunks are open at a time; the next record comes from one of them,
// drawn with a probability proportional to its number of remaining records. All random numbers are
// counter-based on (seed, epoch, chunk), so a position consists of the epoch, the next chunk and a
// cursor for each open chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/formats/columns.h"

namespace muster::data {

struct ReaderSpec {
  int batch_size = 128;
  bool shuffle = false;
  uint64_t seed = 0;
  int open_chunks = 16;
  // How many of the next chunks are read, each on a separate thread, while the current ones are
  // used (data/read_ahead.h). 0: each chunk is read when it is needed. Batches and positions do not
  // depend on it. Memory: open_chunks (1 without shuffle) + chunks_ahead chunks of about 1 MiB.
  int chunks_ahead = 8;
  int64_t epochs = 1;           // <= 0: indefinitely
  int64_t first_epoch = 0;      // without a position; the epochs before it count as done
  bool drop_remainder = false;  // drops each epoch's last, smaller batch
  // How many rows that do not fit the schema may be left out per epoch, including the source's bad
  // records.
  uint64_t max_bad_records = 0;
  TakeBadRecord take_bad_record = {};  // for rows that are left out here; the source has its own
};

// The position of a reader: plain data, printable (docs/formats/position.md), comparable.
struct Position {
  struct Cursor {
    uint32_t ordinal = 0;   // the chunk's index in the epoch's order
    uint64_t consumed = 0;  // records taken from the chunk
    friend bool operator==(const Cursor&, const Cursor&) = default;
  };
  uint64_t source_fingerprint = 0;
  uint64_t seed = 0;
  int64_t epoch = 0;
  uint64_t emitted = 0;  // records taken in this epoch
  uint32_t next_ordinal = 0;
  std::vector<Cursor> open;
  uint64_t bad_records = 0;  // rows left out in this epoch
  friend bool operator==(const Position&, const Position&) = default;
};
std::string SerializePosition(const Position& position);
// The inverse of SerializePosition. DATA_LOSS for bytes that are cut, changed or of another
// version. Does not check that the position fits any data: BatchReader does.
absl::StatusOr<Position> ParsePosition(std::string_view bytes);

// One owner thread.
class BatchReader {
 public:
  // Keeps a reference to `source`. FAILED_PRECONDITION if `start` belongs to other data or another
  // seed.
  static absl::StatusOr<std::unique_ptr<BatchReader>> Create(
      std::shared_ptr<const RecordSource> source, const formats::Schema& schema,
      const ReaderSpec& spec, const Position* start = nullptr);
  virtual ~BatchReader() = default;
  // Replaces *columns by the next batch (batch_size rows, or fewer at an epoch's end); returns
  // false when all epochs are done. Errors name file, record offset, column and value.
  virtual absl::StatusOr<bool> Next(formats::Columns* columns) = 0;
  // The position after the last batch that was returned.
  virtual Position position() const = 0;
  // The epoch of the last batch that was returned, counted from 0.
  virtual int64_t epoch() const = 0;
  // The number of rows in the last, smaller batches of epochs that drop_remainder has dropped since
  // Create.
  virtual uint64_t dropped() const { return 0; }
  // Where row `row` of the last batch came from: "FILE: record at byte N" or "FILE:LINE".
  virtual std::string Origin(int row) const = 0;
  // The row's number in the data, counted from 0; rows that were left out count too.
  virtual uint64_t Number(int row) const = 0;
  // Of the records of a partition: which one row `row` of the last batch is.
  virtual MessageId Message(int /*row*/) const { return {}; }
  // For a row in which a later step finds an error `why` (such as an unknown label): removes it
  // from *columns, which is the last batch, and counts it as bad. If max_bad_records is used up,
  // returns `why` preceded by the row's origin instead.
  virtual absl::Status RejectRow(int row, const absl::Status& why, formats::Columns* columns) = 0;
  // After RejectRow: fills *columns up with the next rows of the epoch, which may be bad as well.
  // Returns false if no batch remains, because it has no rows or is a smaller one that
  // drop_remainder drops; *columns is then empty, and Next continues.
  virtual absl::StatusOr<bool> Refill(formats::Columns* columns) = 0;
  // The number of rows left out of the epoch so far; after the end, of the last epoch.
  virtual uint64_t bad_rows() const = 0;
  // Thread-safe: makes Next return CANCELLED soon, even if it waits for a chunk. Does not interrupt
  // a read in progress, for which the destructor waits.
  virtual void Stop() {}
};

}  // namespace muster::data
