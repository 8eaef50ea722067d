// A server's keys of one table that grows, in files: TableFiles' part for such tables.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/status.h"
#include "muster/formats/bundle.h"
#include "muster/io/file_system.h"
#include "muster/ps/server/table_files.h"
#include "muster/ps/wire/message.h"

namespace muster::ps {

// Appends the columns of the table to `file`, and their checksums and the numbers of keys to
// *saved. Needs 20 bytes of memory for each key. ABORTED if the table changes meanwhile.
absl::Status SaveKeys(const Variable& table, uint32_t variable, TableState& state,
                      io::WritableFile& file, SavedTables* saved);

// Loads the keys that are on `server` of `servers` from a checkpoint, in any order of keys. Needs
// 16 bytes of memory for each of them, and 24 more where the order is another one.
// FAILED_PRECONDITION if it has no such table, DATA_LOSS if its tensors do not fit each other.
absl::Status LoadKeys(const Variable& table, uint32_t variable, int server, int servers,
                      const formats::BundleReader& bundle, const std::string& checkpoint,
                      TableState& state);

}  // namespace muster::ps
