#include "muster/train/input/row_values.h"

#include <bit>

#include "muster/base/strings.h"
#include "muster/features/fingerprint.h"

namespace muster::train {

using formats::ValueType;

void PrintValues(const formats::Columns& rows, const formats::Schema& schema, int field,
                 std::vector<std::string>* values) {
  const formats::Column& column = rows.column(field);
  const ValueType type = schema.fields[static_cast<size_t>(field)].type;
  for (size_t row = 0; row < static_cast<size_t>(rows.rows()); ++row) {
    switch (type) {
      case ValueType::kInt:
        values->push_back(StrCat(column.ints[row]));
        break;
      case ValueType::kFloat:
        values->push_back(StrCat(column.floats[row]));
        break;
      case ValueType::kString:
        values->emplace_back(column.strings[row]);
        break;
    }
  }
}

void NumberValues(const formats::Columns& rows, const formats::Schema& schema, int field,
                  std::vector<uint64_t>* numbers) {
  const formats::Column& column = rows.column(field);
  const ValueType type = schema.fields[static_cast<size_t>(field)].type;
  for (size_t row = 0; row < static_cast<size_t>(rows.rows()); ++row) {
    switch (type) {
      case ValueType::kInt:
        numbers->push_back(static_cast<uint64_t>(column.ints[row]));
        break;
      case ValueType::kFloat:
        numbers->push_back(std::bit_cast<uint32_t>(column.floats[row]));
        break;
      case ValueType::kString:
        numbers->push_back(features::Fingerprint64(column.strings[row]));
        break;
    }
  }
}

}  // namespace muster::train
