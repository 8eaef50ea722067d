// Best: the record, FOLDER/best_checkpoint, of the checkpoint that evaluation found best. A Saver
// keeps that checkpoint in addition to those that it keeps anyway.
// docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::checkpoint {

struct Best {
  std::string name;  // "model.ckpt-100"
  int64_t step = 0;
  std::string metric;  // the metric that decided
  bool higher_is_better = false;
  double value = 0;  // of the metric; may be NaN
};

// nullopt if there is no such file; DATA_LOSS if it cannot be parsed.
absl::StatusOr<std::optional<Best>> ReadBest(io::FileSystem& files, const std::string& folder);

// Removes the temporary files that killed writers of the record have left. No process may be
// writing it.
void RemoveBestLeftovers(io::FileSystem& files, const std::string& folder);

// A reader finds either the old or the new contents.
absl::Status WriteBest(io::FileSystem& files, const std::string& folder, const Best& best);

// The prefix of the best checkpoint. NOT_FOUND if no evaluation has named one, or it is gone.
absl::StatusOr<std::string> FindBest(io::FileSystem& files, const std::string& folder);

}  // namespace muster::checkpoint
