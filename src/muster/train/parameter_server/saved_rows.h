// What parameter servers have saved of a model's tables, as tensors of one checkpoint.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/checkpoint/saver.h"
#include "muster/ps/wire/message.h"
#include "muster/ps/wire/placement.h"

namespace muster::train {

// Reads the servers' reports of their files, from the first table of the model to the last one.
// Errors are ABORTED, and name the server whose report does not fit the tables.
class SavedRowsReader {
 public:
  // `saved`, by server, must outlive the object.
  explicit SavedRowsReader(std::span<const ps::SavedTables> saved)
      : saved_(saved), next_(saved.size()) {}

  // Adds the tensors of a table of a fixed size, which is the variable of this number.
  absl::Status AddRows(const ps::Variable& table, int variable, const ps::Placement& placement,
                       checkpoint::RowFiles* files);
  // Adds the tensors of a table that grows.
  absl::Status AddKeys(const ps::Variable& table, checkpoint::RowFiles* files);

 private:
  // The next rows of a server's file.
  struct Next {
    size_t checksum = 0, keys = 0;  // in SavedTables
    uint64_t offset = 0;            // in the file
  };

  absl::Status AddNext(size_t server, int64_t first, int64_t count, uint64_t row_bytes,
                       checkpoint::RowFiles::Rows* tensor);

  const std::span<const ps::SavedTables> saved_;
  std::vector<Next> next_;  // by server
};

}  // namespace muster::train
