#include "muster/formats/json_lines.h"

#include <cmath>
#include <optional>
#include <string>

#include "muster/base/strings.h"
#include "muster/formats/dates.h"
#include "muster/formats/missing.h"
#include "muster/formats/text_number.h"
#include "nlohmann/json.hpp"

namespace muster::formats {
namespace {

using JsonValue = nlohmann::json;

constexpr size_t kShownValue = 64;

std::string Shown(const JsonValue& value) {
  std::string text = value.dump(-1, ' ', false, JsonValue::error_handler_t::replace);
  if (text.size() > kShownValue) text = StrCat(text.substr(0, kShownValue), "...");
  return text;
}

class JsonDecoder : public RowDecoder {
 public:
  explicit JsonDecoder(const Schema& schema)
      : schema_(schema), missing_(GetMissingValues(schema)) {}

  absl::Status Decode(std::string_view record, Columns* columns) override {
    const JsonValue row = JsonValue::parse(record, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) return absl::DataLossError("not a JSON object");
    for (size_t i = 0; i < schema_.fields.size(); ++i) {
      const absl::Status status = DecodeField(row, static_cast<int>(i), columns);
      if (!status.ok()) {
        columns->DropPartialRow();
        return Annotate(status, StrCat("column '", schema_.fields[i].name, "'"));
      }
    }
    columns->AddRow();
    return absl::OkStatus();
  }

 private:
  absl::Status DecodeField(const JsonValue& row, int index, Columns* columns) const {
    const Field& field = schema_.fields[index];
    Column& column = columns->mutable_column(index);
    const auto member = row.find(field.name);
    const MissingValues& missing = missing_[index];
    const bool none =
        member == row.end() || member->is_null() || IsMissingWord(missing, field, *member);
    if (field.list) {
      if (none) return absl::OkStatus();
      if (!member->is_array()) {
        MUSTER_RETURN_IF_ERROR(Append(*member, field, columns, &column));
      } else {
        for (const JsonValue& value : *member) {
          MUSTER_RETURN_IF_ERROR(Append(value, field, columns, &column));
        }
      }
      missing.RemoveOnly(column.offsets.back(), &column);
      return absl::OkStatus();
    }
    if (!none) {
      MUSTER_RETURN_IF_ERROR(Append(*member, field, columns, &column));
      if (!missing.RemoveOnly(static_cast<size_t>(columns->rows()), &column)) {
        return absl::OkStatus();
      }
    }
    if (!field.has_default) return absl::InvalidArgumentError("no value and no default");
    columns->AppendDefault(index, field);
    return absl::OkStatus();
  }

  // Whether the member is a text that counts as missing, such as "NA", even in a field of numbers,
  // in which an empty text does, too.
  static bool IsMissingWord(const MissingValues& missing, const Field& field,
                            const JsonValue& member) {
    const bool one_in_list = field.list && member.is_array() && member.size() == 1;
    const JsonValue& value = one_in_list ? member.front() : member;
    if (!value.is_string()) return false;
    const std::string_view text = value.get_ref<const std::string&>();
    return missing.Has(text) || (field.type != ValueType::kString && TrimSpaces(text).empty());
  }

  static absl::Status Append(const JsonValue& value, const Field& field, Columns* columns,
                             Column* column) {
    const auto wrong = [&](std::string_view what) {
      return absl::InvalidArgumentError(StrCat(Shown(value), " is not ", what));
    };
    if (value.is_string()) return AppendText(value, field, columns, column);
    switch (field.type) {
      case ValueType::kInt: {
        if (value.is_boolean()) {
          column->ints.push_back(value.get<bool>() ? 1 : 0);
        } else if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) {
          return wrong("an int (64 bits)");
        } else if (value.is_number_integer()) {
          column->ints.push_back(value.get<int64_t>());
        } else if (value.is_number() && std::fabs(value.get<double>()) < 0x1p63 &&
                   (field.truncate || std::trunc(value.get<double>()) == value.get<double>())) {
          column->ints.push_back(static_cast<int64_t>(value.get<double>()));
        } else {
          return wrong("an int");
        }
        return absl::OkStatus();
      }
      case ValueType::kFloat:
        if (value.is_boolean()) {
          column->floats.push_back(value.get<bool>() ? 1 : 0);
        } else if (value.is_number() && std::isfinite(value.get<float>())) {
          column->floats.push_back(value.get<float>());
        } else {
          return wrong("a float");
        }
        return absl::OkStatus();
      case ValueType::kString:
        return wrong("a string");
    }
    return absl::InternalError("unknown type");
  }

  // Numbers may be in quotes, and are then read as those of CSV.
  static absl::Status AppendText(const JsonValue& value, const Field& field, Columns* columns,
                                 Column* column) {
    const std::string& whole = value.get_ref<const std::string&>();
    const std::string_view text = TrimSpaces(whole);
    ParsedNumber parsed = ParsedNumber::kOk;
    if (field.type == ValueType::kString) {
      column->strings.push_back(columns->Store(whole));
    } else if (field.type == ValueType::kFloat) {
      float number = 0;
      parsed = ParseFloat(text, &number);
      column->floats.push_back(number);
    } else {
      int64_t number = 0;
      const std::optional<int64_t> seconds =
          field.date ? ParseDateCell(text, field.date_order) : std::nullopt;
      if (!seconds) parsed = ParseInt(text, field.truncate, &number);
      column->ints.push_back(seconds.value_or(number));
    }
    if (parsed == ParsedNumber::kOk) return absl::OkStatus();
    return absl::InvalidArgumentError(
        StrCat(Shown(value), " ", DescribeNotRead(field, text, parsed)));
  }

  const Schema schema_;
  const std::vector<MissingValues> missing_;  // by field
};

}  // namespace

std::unique_ptr<RowDecoder> NewJsonDecoder(const Schema& schema) {
  return std::make_unique<JsonDecoder>(schema);
}

}  // namespace muster::formats
