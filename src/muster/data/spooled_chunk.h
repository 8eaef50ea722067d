// Keeps the bytes of a large compressed file, once decompressed, out of memory: in a file without a
// name that is mapped. The system takes the pages of the mapping back when memory is short, which
// it cannot do with memory of the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/data/source.h"

namespace muster::data {

// A chunk with more bytes than these is worth a file. A shuffle has 16 chunks open.
constexpr uint64_t kMostBytesInMemory = uint64_t{16} << 20;

// Where such files are made: $TMPDIR, else /var/tmp, which is a disk where /tmp may be memory.
std::string GetSpoolFolder();

// Returns the chunk whose pieces `stream` gives, as RecordSource::Read would, with its bytes in a
// file in `folder`. The file is gone with the chunk, and with the process however it ends.
// `whole`: a chunk without records, with the properties that all pieces share. It ends early once
// it has more than `max_bad_records` bad records. Errors are those of the stream, and
// RESOURCE_EXHAUSTED or others if `folder` takes no such file or no more bytes.
absl::StatusOr<std::shared_ptr<const Chunk>> SpoolChunk(ChunkStream& stream,
                                                        std::shared_ptr<Chunk> whole,
                                                        const std::string& folder,
                                                        uint64_t max_bad_records);

}  // namespace muster::data
