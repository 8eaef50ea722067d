#include "muster/train/parameter_server/saved_rows.h"

#include <limits>
#include <utility>

#include "muster/tables/dynamic_table_columns.h"

namespace muster::train {

absl::Status SavedRowsReader::AddNext(size_t server, int64_t first, int64_t count,
                                      uint64_t row_bytes, checkpoint::RowFiles::Rows* tensor) {
  const std::vector<uint32_t>& checksums = saved_[server].checksums;
  Next& next = next_[server];
  if (next.checksum == checksums.size()) {
    return absl::AbortedError(StrCat("ps-", server, " has saved too few rows"));
  }
  const uint32_t crc = checksums[next.checksum++];
  if (count == 0) return absl::OkStatus();
  tensor->rows.push_back({.file = static_cast<int>(server) + 1,
                          .first = first,
                          .count = count,
                          .offset = next.offset,
                          .crc = crc});
  next.offset += static_cast<uint64_t>(count) * row_bytes;
  return absl::OkStatus();
}

absl::Status SavedRowsReader::AddRows(const ps::Variable& table, int variable,
                                      const ps::Placement& placement, checkpoint::RowFiles* files) {
  const uint64_t row_bytes = static_cast<uint64_t>(table.cols) * sizeof(float);
  for (const std::string& name : table.tensors) {
    auto& tensor = files->tensors.emplace_back();
    tensor.name = name;
    tensor.shape = {table.rows, table.cols};
    for (size_t server = 0; server < saved_.size(); ++server) {
      for (const ps::RowRun& run : placement.GetRuns(variable, static_cast<int>(server))) {
        MUSTER_RETURN_IF_ERROR(AddNext(server, run.first, run.count, row_bytes, &tensor));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SavedRowsReader::AddKeys(const ps::Variable& table, checkpoint::RowFiles* files) {
  // By server: its keys with a row, and those that wait for one.
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (size_t server = 0; server < saved_.size(); ++server) {
    const std::vector<int64_t>& keys = saved_[server].keys;
    Next& next = next_[server];
    const auto is_count = [&](size_t i) {
      return i < keys.size() && keys[i] >= 0 && keys[i] <= std::numeric_limits<int32_t>::max();
    };
    if (!is_count(next.keys) || !is_count(next.keys + 1)) {
      return absl::AbortedError(
          StrCat("ps-", server, " does not say how many keys of ", table.name, " it has saved"));
    }
    counts.emplace_back(keys[next.keys], keys[next.keys + 1]);
    next.keys += 2;
  }
  for (const auto& column : tables::GetDynamicTableColumns(table.tensors, table.cols)) {
    auto& tensor = files->tensors.emplace_back();
    tensor.name = column.name;
    if (column.cols == 0) tensor.type = formats::DataType::kInt64;
    int64_t keys = 0;
    for (size_t server = 0; server < saved_.size(); ++server) {
      const int64_t count = column.is_of_waiting() ? counts[server].second : counts[server].first;
      MUSTER_RETURN_IF_ERROR(AddNext(server, keys, count, column.bytes_of_key(), &tensor));
      keys += count;
    }
    tensor.shape = {keys};
    if (column.cols > 0) tensor.shape.push_back(column.cols);
  }
  return absl::OkStatus();
}

}  // namespace muster::train
