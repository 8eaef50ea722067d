// Columns: some rows of a table, stored by column. Decoders fill it and features read it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "muster/formats/schema.h"

namespace muster::formats {

// The values of one field. The field's type determines which one of the vectors is used.
struct Column {
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;  // they point into memory that Columns::keep_alive owns
  // For lists only: row r has the values [offsets[r], offsets[r+1]). There are rows + 1 entries;
  // the first is 0.
  std::vector<uint32_t> offsets;
  // For fields with mark_missing only: 1 for each row that has no value and got the default, else
  // 0.
  std::vector<uint8_t> missing;
};

// Rows of `schema`'s fields. Reused from batch to batch: Clear() keeps the capacity.
// One owner thread at a time.
class Columns {
 public:
  explicit Columns(const Schema& schema);

  void Clear();

  int rows() const { return rows_; }
  const std::vector<Column>& columns() const { return columns_; }
  const Column& column(int i) const { return columns_[i]; }

  // For decoders: append one value to each scalar column and any number of values to each list
  // column, then call AddRow(), which also ends the lists.
  Column& mutable_column(int i) { return columns_[i]; }
  void AddRow();
  // For decoders of whole columns: called after `rows` values were appended to each scalar column
  // and as many offsets to each list column.
  void AddRows(int rows);
  // Appends the default of field `i`, which is `field` and must have one, and marks the row as
  // missing if the field has mark_missing.
  void AppendDefault(int i, const Field& field);
  // Replaces the value of row `row` by the default, as AppendDefault does.
  void SetDefault(int i, const Field& field, size_t row);
  // Removes what was appended since the last AddRow(), so that a bad row leaves nothing.
  void DropPartialRow();

  // Removes one row; the rows after it move up.
  void RemoveRow(int row);

  // Keeps the memory that string values point into until Clear().
  void KeepAlive(std::shared_ptr<const void> memory);
  // Copies `bytes` to memory that lives as long as this batch's rows: for unescaped CSV cells and
  // defaults.
  std::string_view Store(std::string_view bytes);

 private:
  std::vector<ValueType> types_;
  std::vector<int> lists_;   // indices of the list columns
  std::vector<int> marked_;  // indices of the fields with mark_missing
  std::vector<Column> columns_;
  std::vector<std::shared_ptr<const void>> keep_alive_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // memory for Store(), kept by Clear()
  size_t blocks_used_ = 0;
  size_t block_left_ = 0;
  char* block_next_ = nullptr;
  int rows_ = 0;
};

}  // namespace muster::formats
