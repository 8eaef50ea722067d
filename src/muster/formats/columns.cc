#include "muster/formats/columns.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace muster::formats {
namespace {

constexpr size_t kStoreBlockBytes = size_t{64} << 10;

size_t ValueCount(const Column& column, ValueType type) {
  switch (type) {
    case ValueType::kInt:
      return column.ints.size();
    case ValueType::kFloat:
      return column.floats.size();
    case ValueType::kString:
      return column.strings.size();
  }
  return 0;
}

void EraseValues(size_t begin, size_t end, ValueType type, Column* column) {
  const auto erase = [&](auto& values) {
    values.erase(values.begin() + static_cast<ptrdiff_t>(begin),
                 values.begin() + static_cast<ptrdiff_t>(end));
  };
  switch (type) {
    case ValueType::kInt:
      erase(column->ints);
      break;
    case ValueType::kFloat:
      erase(column->floats);
      break;
    case ValueType::kString:
      erase(column->strings);
      break;
  }
}

}  // namespace

Columns::Columns(const Schema& schema) : columns_(schema.fields.size()) {
  types_.reserve(schema.fields.size());
  for (const Field& field : schema.fields) {
    if (field.list) {
      lists_.push_back(static_cast<int>(types_.size()));
      columns_[types_.size()].offsets.push_back(0);
    }
    if (field.mark_missing) marked_.push_back(static_cast<int>(types_.size()));
    types_.push_back(field.type);
  }
}

void Columns::AppendDefault(int i, const Field& field) {
  Column& column = columns_[static_cast<size_t>(i)];
  switch (field.type) {
    case ValueType::kInt:
      column.ints.push_back(std::get<int64_t>(field.default_value));
      break;
    case ValueType::kFloat:
      column.floats.push_back(std::get<float>(field.default_value));
      break;
    case ValueType::kString: {
      const std::string& text = std::get<std::string>(field.default_value);
      column.strings.push_back(text.empty() ? std::string_view("") : Store(text));
      break;
    }
  }
  if (!field.mark_missing) return;
  column.missing.resize(ValueCount(column, field.type), 0);
  column.missing.back() = 1;
}

void Columns::SetDefault(int i, const Field& field, size_t row) {
  Column& column = columns_[static_cast<size_t>(i)];
  AppendDefault(i, field);
  const auto move_last = [row](auto& values) {
    values[row] = values.back();
    values.pop_back();
  };
  switch (field.type) {
    case ValueType::kInt:
      move_last(column.ints);
      break;
    case ValueType::kFloat:
      move_last(column.floats);
      break;
    case ValueType::kString:
      move_last(column.strings);
      break;
  }
  if (field.mark_missing) move_last(column.missing);
}

void Columns::Clear() {
  for (Column& column : columns_) {
    column.ints.clear();
    column.floats.clear();
    column.strings.clear();
    column.missing.clear();
    if (!column.offsets.empty())
      column.offsets.erase(column.offsets.begin() + 1, column.offsets.end());
  }
  keep_alive_.clear();
  blocks_used_ = 0;
  block_left_ = 0;
  rows_ = 0;
}

void Columns::AddRow() {
  for (const int list : lists_) {
    Column& column = columns_[list];
    column.offsets.push_back(static_cast<uint32_t>(ValueCount(column, types_[list])));
  }
  AddRows(1);
}

void Columns::AddRows(int rows) {
  rows_ += rows;
  for (const int i : marked_) {
    columns_[static_cast<size_t>(i)].missing.resize(static_cast<size_t>(rows_), 0);
  }
#ifndef NDEBUG
  for (size_t i = 0; i < columns_.size(); ++i) {
    assert(columns_[i].offsets.empty()
               ? ValueCount(columns_[i], types_[i]) == static_cast<size_t>(rows_)
               : columns_[i].offsets.size() == static_cast<size_t>(rows_) + 1);
  }
#endif
}

void Columns::DropPartialRow() {
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    const size_t whole =
        column.offsets.empty() ? static_cast<size_t>(rows_) : column.offsets.back();
    EraseValues(whole, std::max(whole, ValueCount(column, types_[i])), types_[i], &column);
  }
  for (const int i : marked_) {
    columns_[static_cast<size_t>(i)].missing.resize(static_cast<size_t>(rows_), 0);
  }
}

void Columns::RemoveRow(int row) {
  assert(row >= 0 && row < rows_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (column.offsets.empty()) {
      EraseValues(row, row + 1, types_[i], &column);
      continue;
    }
    const uint32_t begin = column.offsets[row], end = column.offsets[row + 1];
    EraseValues(begin, end, types_[i], &column);
    column.offsets.erase(column.offsets.begin() + row + 1);
    for (size_t r = row + 1; r < column.offsets.size(); ++r) column.offsets[r] -= end - begin;
  }
  for (const int i : marked_) {
    std::vector<uint8_t>& missing = columns_[static_cast<size_t>(i)].missing;
    missing.erase(missing.begin() + row);
  }
  --rows_;
}

void Columns::KeepAlive(std::shared_ptr<const void> memory) {
  if (keep_alive_.empty() || keep_alive_.back() != memory) keep_alive_.push_back(std::move(memory));
}

std::string_view Columns::Store(std::string_view bytes) {
  if (bytes.size() > kStoreBlockBytes / 4) {
    auto own = std::make_shared<const std::string>(bytes);
    const std::string_view stored = *own;
    keep_alive_.push_back(std::move(own));
    return stored;
  }
  if (bytes.size() > block_left_) {
    if (blocks_used_ == blocks_.size()) {
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(kStoreBlockBytes));
    }
    block_next_ = blocks_[blocks_used_++].get();
    block_left_ = kStoreBlockBytes;
  }
  if (bytes.empty()) return {};
  std::memcpy(block_next_, bytes.data(), bytes.size());
  const std::string_view stored(block_next_, bytes.size());
  block_next_ += bytes.size();
  block_left_ -= bytes.size();
  return stored;
}

}  // namespace muster::formats
