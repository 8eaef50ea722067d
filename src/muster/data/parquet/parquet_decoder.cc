#include "muster/data/parquet/parquet_decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/base/strings.h"
#include "muster/formats/missing.h"

namespace muster::data {
namespace {

using formats::Column;
using formats::Columns;
using formats::Field;
using formats::ValueType;
using Kind = ParquetColumn::Kind;

ParquetRow Unpack(std::string_view record) {
  ParquetRow row;
  std::memcpy(&row, record.data(), sizeof row);
  return row;
}

template <typename From, typename To>
void AppendCast(const ParquetColumn& from, uint64_t begin, uint64_t count, std::vector<To>* to) {
  const From* const values = reinterpret_cast<const From*>(from.values) + begin;
  if (count == 1) {
    to->push_back(static_cast<To>(*values));
    return;
  }
  const size_t had = to->size();
  to->resize(had + count);
  // An int8_t is a number here, with its sign. NOLINTNEXTLINE(bugprone-signed-char-misuse)
  for (uint64_t i = 0; i < count; ++i) (*to)[had + i] = static_cast<To>(values[i]);
}

template <typename To>
void AppendNumbers(const ParquetColumn& from, uint64_t begin, uint64_t count, std::vector<To>* to) {
  switch (from.kind) {
    case Kind::kI8:
      return AppendCast<int8_t>(from, begin, count, to);
    case Kind::kI16:
      return AppendCast<int16_t>(from, begin, count, to);
    case Kind::kI32:
      return AppendCast<int32_t>(from, begin, count, to);
    case Kind::kI64:
      return AppendCast<int64_t>(from, begin, count, to);
    case Kind::kU8:
      return AppendCast<uint8_t>(from, begin, count, to);
    case Kind::kU16:
      return AppendCast<uint16_t>(from, begin, count, to);
    case Kind::kU32:
      return AppendCast<uint32_t>(from, begin, count, to);
    case Kind::kF32:
      return AppendCast<float>(from, begin, count, to);
    case Kind::kF64:
      return AppendCast<double>(from, begin, count, to);
    case Kind::kAbsent:
    case Kind::kText:
      break;
  }
}

void AppendTexts(const ParquetColumn& from, uint64_t begin, uint64_t count,
                 std::vector<std::string_view>* to) {
  const int32_t* const offsets = from.offsets + begin;
  const int32_t first = from.offsets[0];
  const size_t had = to->size();
  to->resize(had + count);
  for (uint64_t i = 0; i < count; ++i) {
    (*to)[had + i] = {from.values + (offsets[i] - first),
                      static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }
}

void AppendValues(const ParquetColumn& from, uint64_t begin, uint64_t count, ValueType type,
                  Column* to) {
  switch (type) {
    case ValueType::kInt:
      return AppendNumbers(from, begin, count, &to->ints);
    case ValueType::kFloat:
      return AppendNumbers(from, begin, count, &to->floats);
    case ValueType::kString:
      return AppendTexts(from, begin, count, &to->strings);
  }
}

size_t CountValues(const Column& column, ValueType type) {
  switch (type) {
    case ValueType::kInt:
      return column.ints.size();
    case ValueType::kFloat:
      return column.floats.size();
    case ValueType::kString:
      break;
  }
  return column.strings.size();
}

class ParquetDecoder : public formats::RowDecoder {
 public:
  ParquetDecoder(const formats::Schema& schema, std::vector<size_t> places)
      : fields_(schema.fields),
        places_(std::move(places)),
        missing_(formats::GetMissingValues(schema)) {}

  absl::Status Decode(std::string_view record, Columns* columns) override {
    const ParquetRow row = Unpack(record);
    for (size_t i = 0; i < fields_.size(); ++i) {
      const absl::Status status = DecodeField(i, row, columns);
      if (status.ok()) continue;
      columns->DropPartialRow();
      return status;
    }
    columns->AddRow();
    return absl::OkStatus();
  }

  bool DecodesRuns() const override { return true; }

  absl::Status DecodeRun(std::span<const std::string_view> records, Columns* columns,
                         size_t* decoded) override {
    for (*decoded = 0; *decoded < records.size();) {
      const ParquetRow first = Unpack(records[*decoded]);
      if (MayFail(*first.block)) {
        MUSTER_RETURN_IF_ERROR(Decode(records[*decoded], columns));
        ++*decoded;
        continue;
      }
      const uint64_t count =
          std::min<uint64_t>(first.block->rows - first.row, records.size() - *decoded);
      for (size_t i = 0; i < fields_.size(); ++i) {
        MUSTER_RETURN_IF_ERROR(DecodeRows(i, first, count, columns));
      }
      columns->AddRows(static_cast<int>(count));
      *decoded += count;
    }
    return absl::OkStatus();
  }

 private:
  const ParquetColumn& GetColumn(size_t field, const ParquetBlock& block) const {
    return block.columns[places_[field]];
  }

  // Whether some row may lack a value that has no default: rows are then decoded one by one.
  bool MayFail(const ParquetBlock& block) const {
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].list || fields_[i].has_default) continue;
      const ParquetColumn& column = GetColumn(i, block);
      if (column.kind == Kind::kAbsent || column.valid != nullptr || !missing_[i].empty()) {
        return true;
      }
    }
    return false;
  }

  absl::Status AppendDefault(size_t i, Columns* columns) const {
    const Field& field = fields_[i];
    if (!field.has_default) {
      return absl::InvalidArgumentError(
          StrCat("column '", field.name, "' has no value, and no default in the model file"));
    }
    columns->AppendDefault(static_cast<int>(i), field);
    return absl::OkStatus();
  }

  absl::Status DecodeField(size_t i, const ParquetRow& row, Columns* columns) const {
    const Field& field = fields_[i];
    const ParquetColumn& from = GetColumn(i, *row.block);
    Column& to = columns->mutable_column(static_cast<int>(i));
    const size_t begin = CountValues(to, field.type);
    if (field.list) {
      if (from.kind == Kind::kAbsent) return absl::OkStatus();
      const uint32_t first = from.lists[row.row];
      AppendValues(from, first, from.lists[row.row + 1] - first, field.type, &to);
      missing_[i].RemoveOnly(begin, &to);
      return absl::OkStatus();
    }
    if (from.kind == Kind::kAbsent || !from.Has(row.row)) return AppendDefault(i, columns);
    AppendValues(from, row.row, 1, field.type, &to);
    return missing_[i].RemoveOnly(begin, &to) ? AppendDefault(i, columns) : absl::OkStatus();
  }

  absl::Status DecodeRows(size_t i, const ParquetRow& first, uint64_t count,
                          Columns* columns) const {
    const Field& field = fields_[i];
    const ParquetColumn& from = GetColumn(i, *first.block);
    const auto index = static_cast<int>(i);
    Column& to = columns->mutable_column(index);
    if (field.list) {
      const bool is_there = from.kind != Kind::kAbsent;
      const uint32_t begin = is_there ? from.lists[first.row] : 0;
      const uint32_t end = is_there ? from.lists[first.row + count] : 0;
      const uint32_t had = to.offsets.back();
      const size_t rows = to.offsets.size();
      to.offsets.resize(rows + count, had);
      for (uint64_t row = 0; is_there && row < count; ++row) {
        to.offsets[rows + row] += from.lists[first.row + 1 + row] - begin;
      }
      if (end > begin) AppendValues(from, begin, end - begin, field.type, &to);
    } else if (from.kind == Kind::kAbsent) {
      for (uint64_t row = 0; row < count; ++row) columns->AppendDefault(index, field);
      return absl::OkStatus();
    } else {
      const size_t had = CountValues(to, field.type);
      AppendValues(from, first.row, count, field.type, &to);
      if (from.valid != nullptr) SetDefaults(i, first, count, had, columns);
    }
    if (missing_[i].empty()) return absl::OkStatus();
    return missing_[i].ReplaceRows(field, index, columns->rows(), static_cast<int>(count), columns);
  }

  // Sets the values from `had` on, of `count` rows, that are null.
  void SetDefaults(size_t i, const ParquetRow& first, uint64_t count, size_t had,
                   Columns* columns) const {
    const Field& field = fields_[i];
    const ParquetColumn& from = GetColumn(i, *first.block);
    Column& to = columns->mutable_column(static_cast<int>(i));
    // Without a branch for each value, which nulls here and there would make a costly guess.
    const auto select = [&](auto* values, auto value) {
      auto* const begin = values->data() + had;
      for (uint64_t row = 0; row < count; ++row) {
        begin[row] = from.Has(first.row + row) ? begin[row] : value;
      }
    };
    if (field.type == ValueType::kInt && !field.mark_missing) {
      select(&to.ints, std::get<int64_t>(field.default_value));
    } else if (field.type == ValueType::kFloat && !field.mark_missing) {
      select(&to.floats, std::get<float>(field.default_value));
    } else {
      for (uint64_t row = 0; row < count; ++row) {
        if (from.Has(first.row + row)) continue;
        columns->SetDefault(static_cast<int>(i), field, had + row);
      }
    }
  }

  const std::vector<Field> fields_;
  const std::vector<size_t> places_;
  const std::vector<formats::MissingValues> missing_;
};

}  // namespace

std::unique_ptr<formats::RowDecoder> NewParquetDecoder(const formats::Schema& schema,
                                                       std::vector<size_t> places) {
  return std::make_unique<ParquetDecoder>(schema, std::move(places));
}

absl::Status CheckKinds(const ParquetBlock& block, const std::vector<Field>& fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const ParquetColumn& column = block.columns[i];
    const bool is_text = column.kind == Kind::kText;
    const bool is_float = column.kind == Kind::kF32 || column.kind == Kind::kF64;
    const bool fits = is_text == (fields[i].type == ValueType::kString) &&
                      !(is_float && fields[i].type == ValueType::kInt) &&
                      column.lists.empty() != fields[i].list;
    if (column.kind == Kind::kAbsent || fits) continue;
    return absl::InternalError(
        StrCat("muster-parquet: column '", fields[i].name, "' came with another type"));
  }
  return absl::OkStatus();
}

}  // namespace muster::data
