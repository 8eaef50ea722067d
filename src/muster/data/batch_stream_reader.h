// BatchStreamReader: reads the batches of a stream (formats/batch_stream.h), whose writer chooses
// their sizes and order. Python's input functions feed `muster` through such a stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/data/reader.h"

namespace muster::data {

// Whether the source is a stream of batches instead of files of records: its name ends in .batches,
// or is "-", the standard input.
bool IsBatchStream(const SourceSpec& spec);

// Uses only max_bad_records and take_bad_record of `spec`. Reading cannot continue from the middle:
// a stream is read from its start, in one epoch, and position() says how many rows were taken.
// INVALID_ARGUMENT for several names. Errors name the stream and the batch, counted from 1. A
// stream without its end marker gives DATA_LOSS after its last batch.
absl::StatusOr<std::unique_ptr<BatchReader>> OpenBatchStream(io::FileSystem& files,
                                                             const SourceSpec& source,
                                                             const formats::Schema& schema,
                                                             const ReaderSpec& spec);

// As OpenBatchStream, for a file that gives its bytes once and in order.
absl::StatusOr<std::unique_ptr<BatchReader>> OpenBatchStreamOf(
    std::shared_ptr<const io::RandomAccessFile> file, const formats::Schema& schema,
    const ReaderSpec& spec);

// All columns of a stream, whose schema is known once it is opened.
struct WholeBatchStream {
  formats::Schema schema;
  std::unique_ptr<BatchReader> reader;
};
absl::StatusOr<WholeBatchStream> OpenWholeBatchStream(
    std::shared_ptr<const io::RandomAccessFile> file);

}  // namespace muster::data
