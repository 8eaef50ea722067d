#include "muster/formats/column_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "muster/formats/missing.h"
#include "muster/formats/value_errors.h"

namespace muster::formats {
namespace {

bool HasBit(std::string_view bits, size_t i) {
  return bits.empty() || ((static_cast<uint8_t>(bits[i / 8]) >> (i % 8)) & 1) != 0;
}

// Calls use(read), where read(i) returns value i of the column.
template <typename Use>
auto VisitValues(BufferType type, const ColumnBuffers& buffers, const Use& use) {
  const auto numbers = [&](auto identity) {
    return use([data = buffers.values.data()](size_t i) {
      typename decltype(identity)::type value;
      std::memcpy(&value, data + i * sizeof value, sizeof value);
      return value;
    });
  };
  switch (type) {
    case BufferType::kBool:
      return use([bits = buffers.values](size_t i) { return int8_t{HasBit(bits, i)}; });
    case BufferType::kInt8:
      return numbers(std::type_identity<int8_t>());
    case BufferType::kInt16:
      return numbers(std::type_identity<int16_t>());
    case BufferType::kInt32:
      return numbers(std::type_identity<int32_t>());
    case BufferType::kInt64:
      return numbers(std::type_identity<int64_t>());
    case BufferType::kUint8:
      return numbers(std::type_identity<uint8_t>());
    case BufferType::kUint16:
      return numbers(std::type_identity<uint16_t>());
    case BufferType::kUint32:
      return numbers(std::type_identity<uint32_t>());
    case BufferType::kUint64:
      return numbers(std::type_identity<uint64_t>());
    case BufferType::kFloat:
      return numbers(std::type_identity<float>());
    case BufferType::kDouble:
      return numbers(std::type_identity<double>());
    case BufferType::kString:
      break;
  }
  return use([&buffers](size_t i) {
    const auto begin = static_cast<size_t>(buffers.string_offsets[i]);
    return buffers.values.substr(begin, static_cast<size_t>(buffers.string_offsets[i + 1]) - begin);
  });
}

// Converts a value to the type of a field; false if it does not fit. Types for which there is no
// decoder never fit.
template <typename From, typename To>
bool ConvertValue(From from, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    *to = from;
    return true;
  } else if constexpr (!std::is_arithmetic_v<From> || !std::is_arithmetic_v<To>) {
    return false;
  } else if constexpr (std::is_floating_point_v<To>) {
    *to = static_cast<To>(from);
    return !std::is_same_v<From, double> || std::isfinite(*to) ||
           !std::isfinite(static_cast<double>(from));
  } else if constexpr (std::is_floating_point_v<From>) {
    constexpr From kLimit = 9223372036854775808.0;  // 2^63
    if (!(from >= -kLimit && from < kLimit)) return false;
    *to = static_cast<To>(from);
    return true;
  } else {
    *to = static_cast<To>(+from);  // promoted, since int8_t would be taken for a character
    return std::is_signed_v<From> || *to >= 0;
  }
}

template <typename From>
std::string ShowRead(From value) {
  if constexpr (std::is_integral_v<From>) {
    return ShowValue(
        static_cast<std::conditional_t<std::is_signed_v<From>, int64_t, uint64_t>>(value));
  } else {
    return ShowValue(value);
  }
}

// Calls use(values, fits) with the vector that holds the values of a field in *column.
template <typename Use>
auto VisitField(ValueType type, Column* column, const Use& use) {
  switch (type) {
    case ValueType::kInt:
      return use(&column->ints);
    case ValueType::kFloat:
      return use(&column->floats);
    case ValueType::kString:
      break;
  }
  return use(&column->strings);
}

bool IsFloat(BufferType type) { return type == BufferType::kFloat || type == BufferType::kDouble; }

bool FitsType(BufferType type, const Field& field) {
  switch (field.type) {
    case ValueType::kInt:
      return type != BufferType::kString && (!IsFloat(type) || field.truncate);
    case ValueType::kFloat:
      return type != BufferType::kString;
    case ValueType::kString:
      break;
  }
  return type == BufferType::kString;
}

// Whether every value of the type fits.
bool AlwaysFits(BufferType type, const Field& field) {
  if (field.type == ValueType::kFloat) return type != BufferType::kDouble;
  if (field.type == ValueType::kInt) return !IsFloat(type) && type != BufferType::kUint64;
  return true;
}

class BufferDecoder : public ColumnDecoder {
 public:
  BufferDecoder(const Schema& schema, std::vector<ColumnShape> shapes, std::vector<int> bound)
      : schema_(schema),
        shapes_(std::move(shapes)),
        bound_(std::move(bound)),
        missing_(GetMissingValues(schema)) {}

  void Decode(const ColumnChunk& chunk, std::span<const uint32_t> rows, Columns* columns,
              std::vector<BadRow>* bad) override {
    FindBad(chunk, rows, bad);
    for (size_t f = 0; f < schema_.fields.size(); ++f) {
      if (bound_[f] < 0) {
        FillAbsent(f, columns);
      } else {
        Append(f, chunk, columns);
      }
    }
    columns->KeepAlive(chunk.memory);
    columns->AddRows(static_cast<int>(fitting_.size()));
  }

 private:
  const ColumnShape& GetShape(size_t f) const { return shapes_[static_cast<size_t>(bound_[f])]; }

  // Returns the range of a row's values; empty if it has none.
  static std::pair<size_t, size_t> GetRange(const ColumnShape& shape, const ColumnBuffers& buffers,
                                            size_t row) {
    const bool valid = HasBit(buffers.validity, row);
    if (!shape.list) return {row, row + (valid ? 1 : 0)};
    const auto begin = static_cast<size_t>(buffers.list_offsets[row]);
    return {begin, valid ? static_cast<size_t>(buffers.list_offsets[row + 1]) : begin};
  }

  // Whether some row of the chunk may not fit field `f`.
  bool MayNotFit(size_t f, const ColumnBuffers& buffers) const {
    const Field& field = schema_.fields[f];
    const ColumnShape& shape = GetShape(f);
    if (!AlwaysFits(shape.type, field) || !buffers.value_validity.empty()) return true;
    if (field.list) return false;
    return shape.list ||
           (!field.has_default && (!buffers.validity.empty() || !missing_[f].empty()));
  }

  // Sets fitting_, and appends the other rows to *bad.
  void FindBad(const ColumnChunk& chunk, std::span<const uint32_t> rows, std::vector<BadRow>* bad) {
    fitting_.assign(rows.begin(), rows.end());
    std::vector<absl::Status> errors;
    for (size_t f = 0; f < schema_.fields.size(); ++f) {
      if (bound_[f] < 0) continue;
      const ColumnBuffers& buffers = chunk.columns[static_cast<size_t>(bound_[f])];
      if (!MayNotFit(f, buffers)) continue;
      errors.resize(rows.size());
      VisitValues(GetShape(f).type, buffers, [&](const auto& read) {
        for (size_t place = 0; place < rows.size(); ++place) {
          if (errors[place].ok()) errors[place] = CheckRow(f, buffers, rows[place], read);
        }
      });
    }
    if (errors.empty()) return;
    fitting_.clear();
    for (size_t place = 0; place < rows.size(); ++place) {
      if (errors[place].ok()) {
        fitting_.push_back(rows[place]);
      } else {
        bad->push_back({place, std::move(errors[place])});
      }
    }
  }

  template <typename Read>
  absl::Status CheckRow(size_t f, const ColumnBuffers& buffers, size_t row,
                        const Read& read) const {
    const Field& field = schema_.fields[f];
    const auto [begin, end] = GetRange(GetShape(f), buffers, row);
    const bool needs_value = !field.list && !field.has_default;
    if (begin == end) return needs_value ? NoValueError(field) : absl::OkStatus();
    if (!field.list && end - begin > 1) {
      return ManyValuesError(field, end - begin, ShowRead(read(begin)));
    }
    Column unused;
    return VisitField(field.type, &unused, [&, first = begin, last = end](auto* values) {
      typename std::remove_pointer_t<decltype(values)>::value_type value = {};
      for (size_t i = first; i < last; ++i) {
        if (!HasBit(buffers.value_validity, i)) {
          return ColumnError(field, StrCat("value ", i - first + 1, " of its list is null"));
        }
        if (!ConvertValue(read(i), &value)) return DoesNotFitError(field, ShowRead(read(i)));
      }
      const bool none = last == first + 1 && !missing_[f].empty() && missing_[f].Has(value);
      return none && needs_value ? NoValueError(field) : absl::OkStatus();
    });
  }

  // Appends the fitting rows of one field.
  void Append(size_t f, const ColumnChunk& chunk, Columns* columns) const {
    const ColumnBuffers& buffers = chunk.columns[static_cast<size_t>(bound_[f])];
    Column& column = columns->mutable_column(static_cast<int>(f));
    VisitValues(GetShape(f).type, buffers, [&](const auto& read) {
      VisitField(schema_.fields[f].type, &column, [&](auto* values) {
        for (const uint32_t row : fitting_) AppendRow(f, buffers, row, read, values, columns);
      });
    });
  }

  template <typename Read, typename To>
  void AppendRow(size_t f, const ColumnBuffers& buffers, size_t row, const Read& read,
                 std::vector<To>* values, Columns* columns) const {
    const Field& field = schema_.fields[f];
    const size_t before = values->size();
    const auto [begin, end] = GetRange(GetShape(f), buffers, row);
    for (size_t i = begin; i < end; ++i) {
      To value = {};
      ConvertValue(read(i), &value);
      values->push_back(value);
    }
    Column& column = columns->mutable_column(static_cast<int>(f));
    missing_[f].RemoveOnly(before, &column);
    if (field.list) {
      column.offsets.push_back(static_cast<uint32_t>(values->size()));
    } else if (values->size() == before) {
      columns->AppendDefault(static_cast<int>(f), field);
    }
  }

  void FillAbsent(size_t f, Columns* columns) const {
    Column& column = columns->mutable_column(static_cast<int>(f));
    for (size_t row = 0; row < fitting_.size(); ++row) {
      if (schema_.fields[f].list) {
        column.offsets.push_back(column.offsets.back());
      } else {
        columns->AppendDefault(static_cast<int>(f), schema_.fields[f]);
      }
    }
  }

  const Schema schema_;
  const std::vector<ColumnShape> shapes_;
  const std::vector<int> bound_;              // by field: the index of its column; -1: none
  const std::vector<MissingValues> missing_;  // by field
  std::vector<uint32_t> fitting_;             // rows of the current chunk that fit
};

// Returns the index of a field's column; -1 if there is none and none is needed.
absl::StatusOr<int> FindColumn(const Field& field, const std::vector<ColumnShape>& shapes) {
  int found = -1;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].name != field.name) continue;
    if (found >= 0) {
      return absl::InvalidArgumentError(StrCat("the data has two columns '", field.name, "'"));
    }
    found = static_cast<int>(i);
  }
  if (found < 0) {
    if (field.list || field.has_default) return found;
    return absl::InvalidArgumentError(
        StrCat("the data has no column '", field.name, "', and it has no default"));
  }
  const BufferType type = shapes[static_cast<size_t>(found)].type;
  if (FitsType(type, field)) return found;
  return absl::InvalidArgumentError(StrCat("column '", field.name, "' of the data is ",
                                           BufferTypeName(type), ", but the model file says ",
                                           ValueTypeName(field.type),
                                           field.type == ValueType::kInt && IsFloat(type)
                                               ? " (type float keeps it, truncate: true cuts it)"
                                               : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ColumnDecoder>> NewColumnDecoder(
    const Schema& schema, const std::vector<ColumnShape>& shapes) {
  std::vector<int> bound;
  for (const Field& field : schema.fields) {
    MUSTER_ASSIGN_OR_RETURN(const int column, FindColumn(field, shapes));
    bound.push_back(column);
  }
  return std::make_unique<BufferDecoder>(schema, shapes, std::move(bound));
}

}  // namespace muster::formats
