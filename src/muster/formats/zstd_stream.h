// Reads Zstandard streams (RFC 8878) from files, with libzstd.
#pragma once

#include <cstdint>
#include <memory>

#include "muster/formats/compression.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// As NewByteStream, for Compression::kZstd. Several consecutive frames are one stream. Takes up to
// 128 MiB, the largest window that a frame may need; most frames need 8 MiB at most.
std::unique_ptr<ByteStream> NewZstdStream(std::shared_ptr<const io::RandomAccessFile> file,
                                          uint64_t offset);

}  // namespace muster::formats
