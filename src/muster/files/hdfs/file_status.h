// What a NameNode says of a file or folder: WebHDFS's FileStatus object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/io/file_system.h"

namespace muster::files {

struct HdfsFileStatus {
  std::string name = {};     // in its folder; "" for the path that was asked for
  io::FileInfo info = {};    // its identity is the inode's number; "" by HttpFS
  uint64_t block_bytes = 0;  // of one block of the file
};

// The object of GETFILESTATUS. `what` begins messages. INVALID_ARGUMENT for another object.
absl::StatusOr<HdfsFileStatus> ParseFileStatus(const formats::Json& answer,
                                               const std::string& what);
// The object of LISTSTATUS, sorted by name.
absl::StatusOr<std::vector<HdfsFileStatus>> ParseFileStatuses(const formats::Json& answer,
                                                              const std::string& what);

}  // namespace muster::files
