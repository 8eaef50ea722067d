#include "muster/formats/missing.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/numbers.h"

#include "muster/base/strings.h"

namespace muster::formats {
namespace {

template <typename T>
bool Contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Parses a whole number in any form that a reader accepts as an int: "7", "+7", "7.0", "1e3".
bool ParseWholeNumber(const std::string& word, int64_t* value) {
  if (absl::SimpleAtoi(word, value)) return true;
  double real = 0;
  if (!absl::SimpleAtod(word, &real) || !(std::fabs(real) < 0x1p63) || real != std::trunc(real)) {
    return false;
  }
  *value = static_cast<int64_t>(real);
  return true;
}

// Calls `use` with the vector that holds the values of a column of this type.
template <typename Use>
auto WithValues(ValueType type, Column* column, const Use& use) {
  switch (type) {
    case ValueType::kInt:
      return use(column->ints);
    case ValueType::kFloat:
      return use(column->floats);
    case ValueType::kString:
      break;
  }
  return use(column->strings);
}

}  // namespace

MissingValues::MissingValues(const Field& field) : type_(field.type), words_(field.missing) {
  for (const std::string& word : words_) {
    int64_t whole = 0;
    float real = 0;
    if (type_ == ValueType::kInt && ParseWholeNumber(word, &whole)) ints_.push_back(whole);
    if (type_ != ValueType::kFloat || !absl::SimpleAtof(word, &real)) continue;
    if (std::isnan(real)) {
      nan_ = true;
    } else {
      floats_.push_back(real);
    }
  }
}

bool MissingValues::HasWord(std::string_view text) const {
  return std::any_of(words_.begin(), words_.end(),
                     [&](const std::string& word) { return word == text; });
}

bool MissingValues::HasNumber(int64_t value) const { return Contains(ints_, value); }

bool MissingValues::HasNumber(float value) const {
  return std::isnan(value) ? nan_ : Contains(floats_, value);
}

bool MissingValues::RemoveOnly(size_t begin, Column* column) const {
  if (empty()) return false;
  return WithValues(type_, column, [&](auto& values) {
    if (values.size() != begin + 1 || !Has(values.back())) return false;
    values.pop_back();
    return true;
  });
}

absl::Status MissingValues::ReplaceRows(const Field& field, int i, int first_row, int rows,
                                        Columns* columns) const {
  if (empty()) return absl::OkStatus();
  Column& column = columns->mutable_column(i);
  const auto first = static_cast<size_t>(first_row), end = first + static_cast<size_t>(rows);
  if (field.list) {
    WithValues(type_, &column, [&](auto& values) {
      size_t kept = column.offsets[first];
      for (size_t row = first, begin = kept; row < end; ++row) {
        const size_t next = column.offsets[row + 1];
        if (next != begin + 1 || !Has(values[begin])) {
          for (; begin < next; ++begin) values[kept++] = values[begin];
        }
        begin = next;
        column.offsets[row + 1] = static_cast<uint32_t>(kept);
      }
      values.resize(kept);
    });
    return absl::OkStatus();
  }
  return WithValues(type_, &column, [&](auto& values) -> absl::Status {
    for (size_t row = first; row < end; ++row) {
      if (!Has(values[row])) continue;
      if (!field.has_default) {
        return absl::InvalidArgumentError(StrCat("column '", field.name, "', row ", row - first + 1,
                                                 ": no value and no default"));
      }
      columns->SetDefault(i, field, row);
    }
    return absl::OkStatus();
  });
}

std::vector<MissingValues> GetMissingValues(const Schema& schema) {
  std::vector<MissingValues> missing;
  missing.reserve(schema.fields.size());
  for (const Field& field : schema.fields) missing.emplace_back(field);
  return missing;
}

}  // namespace muster::formats
