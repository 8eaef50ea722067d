#include "muster/features/raw_columns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/formats/image.h"
#include "muster/formats/number_type.h"

namespace muster::features {
namespace {

using formats::DataType;
using formats::ValueType;

constexpr int64_t kMostElements = int64_t{1} << 31;  // limits a column in a batch

bool IsFloating(DataType type) {
  return type == DataType::kFloat || type == DataType::kDouble || type == DataType::kBfloat16 ||
         type == DataType::kHalf;
}

bool IsInteger(DataType type) {
  return !IsFloating(type) && formats::VisitNumber(type, [](auto) {});
}

std::string GetName(const RawColumnSpec& column) {
  return column.name == column.feature || column.name.empty()
             ? StrCat("field '", column.feature, "'")
             : StrCat("field '", column.feature, "' (", column.name, " of the model)");
}

std::string Wanted(const RawColumnSpec& column) {
  return StrCat("the model takes ", formats::DataTypeName(column.type), " ",
                ShapeText(column.shape));
}

// Rounds to the nearest, ties to even, as TensorFlow's casts do.
uint16_t ToBfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t ToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint32_t>((bits >> 16) & 0x8000);
  const float size = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  if (size == 0) return static_cast<uint16_t>(sign);
  if (size >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00);
  // The spacing of halves of this size; nearbyint rounds ties to even.
  int exponent = 0;
  std::frexp(size, &exponent);
  const int lowest = std::max(exponent - 11, -24);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -lowest)));
  if (lowest == -24) return static_cast<uint16_t>(sign | units);
  return static_cast<uint16_t>(sign + (static_cast<uint32_t>(lowest + 24) << 10) + units);
}

// Writes numbers of one type; returns false for a number that the type cannot hold.
class NumberWriter {
 public:
  NumberWriter(DataType type, std::byte* to) : type_(type), to_(to) {}

  bool Put(int64_t value) {
    if (type_ == DataType::kBool) {
      PutBytes(static_cast<uint8_t>(value));
      return value == 0 || value == 1;
    }
    bool fits = false;
    formats::VisitNumber(type_, [&]<class Number>(std::type_identity<Number>) {
      if constexpr (std::is_integral_v<Number>) {
        PutBytes(static_cast<Number>(value));
        fits = std::in_range<Number>(value);
      }
    });
    return fits;
  }
  bool Put(float value) {
    if (type_ == DataType::kDouble) {
      PutBytes(double{value});
    } else if (type_ == DataType::kBfloat16) {
      PutBytes(ToBfloat16(value));
    } else if (type_ == DataType::kHalf) {
      PutBytes(ToHalf(value));
    } else {
      PutBytes(value);
    }
    return true;
  }

 private:
  template <class Number>
  void PutBytes(Number value) {
    std::memcpy(to_, &value, sizeof value);
    to_ += sizeof value;
  }

  const DataType type_;
  std::byte* to_;
};

// Reads one column from the field that it belongs to.
class RawReader {
 public:
  RawReader(RawColumnSpec spec, int field) : spec_(std::move(spec)), field_(field) {
    for (const int64_t size : spec_.shape) {
      if (size == kAnySize) {
        any_ = true;
      } else {
        unit_ *= size;
      }
    }
  }

  absl::Status Read(const formats::Columns& rows, RawColumn* column, int* bad_row) const {
    column->type = spec_.type;
    column->shape = spec_.shape;
    column->bytes.clear();
    column->offsets.clear();
    const formats::Column& values = rows.column(field_);
    if (spec_.is_image()) {
      column->type = DataType::kString;
      column->shape.clear();
      return PutImages(values.strings, rows.rows(), column, bad_row);
    }
    if (spec_.decode == "raw") return ReadBytes(values, rows.rows(), column, bad_row);
    int64_t longest = any_ ? 1 : unit_;
    MUSTER_RETURN_IF_ERROR(CheckCounts(values, rows.rows(), &longest, bad_row));
    if (any_) *std::ranges::find(column->shape, kAnySize) = longest / std::max<int64_t>(unit_, 1);
    if (rows.rows() * longest > kMostElements) {
      return absl::InvalidArgumentError(StrCat(GetName(spec_), ": a batch of ", rows.rows(),
                                               " rows with ", longest,
                                               " values each is too large: give --batch-size"));
    }
    if (spec_.type == DataType::kString) {
      PutStrings(values, rows.rows(), longest, column);
      return absl::OkStatus();
    }
    return IsFloating(spec_.type)
               ? PutNumbers(values, values.floats, rows.rows(), longest, column, bad_row)
               : PutNumbers(values, values.ints, rows.rows(), longest, column, bad_row);
  }

 private:
  static size_t Begin(const formats::Column& values, int row) {
    return values.offsets.empty() ? static_cast<size_t>(row)
                                  : values.offsets[static_cast<size_t>(row)];
  }

  // Checks how many values each row has. If the shape has kAnySize, *longest is the length of the
  // longest row.
  absl::Status CheckCounts(const formats::Column& values, int rows, int64_t* longest,
                           int* bad_row) const {
    if (values.offsets.empty()) return absl::OkStatus();
    if (any_) *longest = std::max<int64_t>(unit_, 1);
    for (int row = 0; row < rows; ++row) {
      const auto count = static_cast<int64_t>(Begin(values, row + 1) - Begin(values, row));
      const bool fits = any_ ? unit_ > 0 && count % unit_ == 0 : count == unit_;
      if (!fits) {
        *bad_row = row;
        return absl::InvalidArgumentError(
            count > 0 ? StrCat(GetName(spec_), " has ", count, " values, ", Wanted(spec_))
                      : StrCat(GetName(spec_), " is missing or empty, ", Wanted(spec_)));
      }
      if (any_) *longest = std::max(*longest, count);
    }
    return absl::OkStatus();
  }

  absl::Status ReadBytes(const formats::Column& values, int rows, RawColumn* column,
                         int* bad_row) const {
    const auto width = static_cast<size_t>(unit_) * formats::DataTypeBytes(spec_.type);
    column->bytes.resize(static_cast<size_t>(rows) * width);
    for (int row = 0; row < rows; ++row) {
      const std::string_view bytes = values.strings[static_cast<size_t>(row)];
      if (bytes.size() != width) {
        *bad_row = row;
        return absl::InvalidArgumentError(StrCat(GetName(spec_), " has ", bytes.size(), " bytes, ",
                                                 Wanted(spec_), ": ", width, " bytes"));
      }
      std::memcpy(column->bytes.data() + static_cast<size_t>(row) * width, bytes.data(), width);
    }
    return absl::OkStatus();
  }

  template <class Number>
  absl::Status PutNumbers(const formats::Column& values, const std::vector<Number>& numbers,
                          int rows, int64_t width, RawColumn* column, int* bad_row) const {
    const size_t size = formats::DataTypeBytes(spec_.type);
    const size_t row_bytes = static_cast<size_t>(width) * size;
    column->bytes.assign(static_cast<size_t>(rows) * row_bytes, std::byte{0});
    for (int row = 0; row < rows; ++row) {
      NumberWriter writer(spec_.type, column->bytes.data() + static_cast<size_t>(row) * row_bytes);
      for (size_t i = Begin(values, row); i < Begin(values, row + 1); ++i) {
        if (writer.Put(numbers[i])) continue;
        *bad_row = row;
        return absl::InvalidArgumentError(
            StrCat(GetName(spec_), " has ", numbers[i], ", ", Wanted(spec_)));
      }
    }
    return absl::OkStatus();
  }

  static void PutString(std::string_view text, RawColumn* column) {
    const auto bytes = std::as_bytes(std::span(text));
    column->bytes.insert(column->bytes.end(), bytes.begin(), bytes.end());
    column->offsets.push_back(column->bytes.size());
  }
  static void PutStrings(const formats::Column& values, int rows, int64_t width,
                         RawColumn* column) {
    column->offsets.push_back(0);
    for (int row = 0; row < rows; ++row) {
      const size_t begin = Begin(values, row), end = Begin(values, row + 1);
      for (size_t i = begin; i < end; ++i) PutString(values.strings[i], column);
      for (auto i = static_cast<int64_t>(end - begin); i < width; ++i) PutString({}, column);
    }
  }

  absl::Status PutImages(const std::vector<std::string_view>& files, int rows, RawColumn* column,
                         int* bad_row) const {
    column->offsets.push_back(0);
    for (int row = 0; row < rows; ++row) {
      const std::string_view bytes = files[static_cast<size_t>(row)];
      if (absl::Status status = CheckFile(bytes); !status.ok()) {
        *bad_row = row;
        return status;
      }
      PutString(bytes, column);
    }
    return absl::OkStatus();
  }

  absl::Status CheckFile(std::string_view bytes) const {
    const auto size = formats::CheckImage(bytes);
    if (!size.ok()) return Annotate(size.status(), GetName(spec_));
    const std::vector<int64_t>& shape = spec_.shape;
    if (shape.size() == 3 && size->height == shape[0] && size->width == shape[1]) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(StrCat(GetName(spec_), " is an image of ", size->height,
                                             " x ", size->width, " pixels, ", Wanted(spec_)));
  }

  const RawColumnSpec spec_;
  const int field_;
  int64_t unit_ = 1;  // the product of all sizes but kAnySize, in values
  bool any_ = false;
};

class RawTransform : public FeatureTransform {
 public:
  RawTransform(std::vector<RawReader> inputs, std::vector<RawReader> labels)
      : inputs_(std::move(inputs)), labels_(std::move(labels)) {}

  absl::Status Apply(const formats::Columns& rows, bool with_labels, FeatureBatch* batch,
                     int* bad_row) const override {
    int ignored = -1;
    int* const bad = bad_row != nullptr ? bad_row : &ignored;
    *bad = -1;
    batch->rows = rows.rows();
    batch->id_lists.clear();
    batch->raw.resize(inputs_.size() + (with_labels ? labels_.size() : 0));
    for (size_t i = 0; i < batch->raw.size(); ++i) {
      const RawReader& reader = i < inputs_.size() ? inputs_[i] : labels_[i - inputs_.size()];
      MUSTER_RETURN_IF_ERROR(reader.Read(rows, &batch->raw[i], bad));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<RawReader> inputs_, labels_;
};

absl::StatusOr<formats::Field> GetField(const RawColumnSpec& column) {
  formats::Field field;
  field.name = column.feature;
  if (!column.decode.empty()) {
    if (std::ranges::count(column.shape, kAnySize) > 0 && column.decode == "raw") {
      return absl::InvalidArgumentError(
          StrCat(GetName(column), ": raw bytes need a shape of fixed lengths"));
    }
    return field;
  }
  if (std::ranges::count(column.shape, kAnySize) > 1) {
    return absl::InvalidArgumentError(StrCat(
        GetName(column), ": ", Wanted(column),
        ", but a list of values can have only one length that varies: give muster.keras.export ",
        "a Field with a shape"));
  }
  field.list = !column.shape.empty();
  if (IsFloating(column.type)) {
    field.type = ValueType::kFloat;
  } else if (IsInteger(column.type)) {
    field.type = ValueType::kInt;
  } else if (column.type != DataType::kString) {
    return absl::InvalidArgumentError(StrCat(GetName(column), ": ", Wanted(column),
                                             ", which no record has: give muster.keras.export a ",
                                             "Field with another dtype"));
  }
  return field;
}

absl::Status AddField(const RawColumnSpec& column, formats::Schema* schema) {
  MUSTER_ASSIGN_OR_RETURN(const formats::Field field, GetField(column));
  const int there = schema->Find(field.name);
  if (there < 0) {
    schema->fields.push_back(field);
    return absl::OkStatus();
  }
  if (schema->fields[static_cast<size_t>(there)] == field) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(GetName(column), ": ", Wanted(column),
             " in one place, and something else from the same field in another"));
}

absl::StatusOr<std::vector<RawReader>> GetReaders(std::vector<RawColumnSpec> columns,
                                                  const formats::Schema& schema) {
  std::vector<RawReader> readers;
  for (RawColumnSpec& column : columns) {
    const int field = schema.Find(column.feature);
    if (field < 0) {
      return absl::NotFoundError(StrCat(GetName(column), " is not among the fields"));
    }
    readers.emplace_back(std::move(column), field);
  }
  return readers;
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  const auto print = [](std::string* text, int64_t size) {
    text->append(size == kAnySize ? "any" : std::to_string(size));
  };
  return StrCat("[", absl::StrJoin(shape, ", ", print), "]");
}

absl::StatusOr<formats::Schema> RawSchema(const RawColumnSpecs& columns, bool with_labels,
                                          bool with_key) {
  formats::Schema schema;
  for (const auto& column : columns.inputs) MUSTER_RETURN_IF_ERROR(AddField(column, &schema));
  if (with_labels) {
    for (const auto& column : columns.labels) MUSTER_RETURN_IF_ERROR(AddField(column, &schema));
  }
  if (with_key && columns.key) MUSTER_RETURN_IF_ERROR(AddField(*columns.key, &schema));
  return schema;
}

absl::StatusOr<std::unique_ptr<FeatureTransform>> NewRawTransform(RawColumnSpecs columns,
                                                                  const formats::Schema& schema) {
  // Labels may be absent if they are not requested.
  std::erase_if(columns.labels,
                [&](const RawColumnSpec& label) { return schema.Find(label.feature) < 0; });
  MUSTER_ASSIGN_OR_RETURN(auto inputs, GetReaders(std::move(columns.inputs), schema));
  MUSTER_ASSIGN_OR_RETURN(auto labels, GetReaders(std::move(columns.labels), schema));
  return std::make_unique<RawTransform>(std::move(inputs), std::move(labels));
}

}  // namespace muster::features
