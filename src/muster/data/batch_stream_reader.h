// BatchStreamReader: the batches of a stream (formats/batch_stream.h) as they come: sizes and order
// are their writer's. What Python's input functions feed `muster` with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/data/reader.h"

namespace muster::data {

// Whether the source is a stream of batches instead of files of records: a name that ends in
// .batches, or "-", the standard input.
bool IsBatchStream(const SourceSpec& spec);

// Of `spec` only max_bad_records counts. There is no going on in the middle: a stream is read from
// its start, in one epoch, and position() says how many rows were taken. INVALID_ARGUMENT for
// several names. Errors name the stream and the batch, counted from 1; a stream without its end is
// DATA_LOSS behind its last batch.
absl::StatusOr<std::unique_ptr<BatchReader>> OpenBatchStream(io::FileSystem& files,
                                                             const SourceSpec& source,
                                                             const formats::Schema& schema,
                                                             const ReaderSpec& spec);

}  // namespace muster::data
