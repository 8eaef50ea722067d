// The subcommands of `muster records`, one or two per source file.
#pragma once

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::cli {

void AddRecords(CLI::App& app);
void AddInit(CLI::App& app);
void AddSample(CLI::App& app);
void AddFs(CLI::App& app);
// Adds `token` to `muster fs`.
void AddFsToken(CLI::App& fs);

// Each adds a verb to `muster records`.
void AddRecordsFromCsv(CLI::App& records);
void AddRecordsFromIdx(CLI::App& records);
void AddRecordsFromParquet(CLI::App& records);
void AddRecordsFromBatches(CLI::App& records);
void AddRecordsInspect(CLI::App& records);
void AddRecordsVerify(CLI::App& records);
void AddRecordsStats(CLI::App& records);
void AddRecordsIndex(CLI::App& records);
void AddRecordsCat(CLI::App& records);
void AddRecordsRanges(CLI::App& records);
void AddRecordsToKafka(CLI::App& records);

// Returns all files of the globs, in order.
absl::StatusOr<std::vector<std::string>> ExpandFiles(io::FileSystem& files,
                                                     const std::vector<std::string>& patterns);

}  // namespace muster::cli
