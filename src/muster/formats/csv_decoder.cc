#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

#include "muster/base/nearest.h"
#include "muster/base/utf8.h"
#include "muster/formats/csv.h"
#include "muster/formats/dates.h"
#include "muster/formats/missing.h"

namespace muster::formats {
namespace {

constexpr size_t kShownBytes = 60;
constexpr size_t kShownWrongBytes = 4;

std::string_view TrimSpaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Removes the '+', which std::from_chars does not accept.
std::string_view TrimPlus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

enum class Parsed { kOk, kWrongType, kOutOfRange, kNotFinite, kFraction };

bool IsDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Parses a number that std::from_chars found to be out of range; tiny values become 0, as with
// strtof.
Parsed ParseOutOfRange(std::string_view text, float* value) {
  if (!absl::SimpleAtof(ToAbsl(text), value)) return Parsed::kWrongType;
  return std::isfinite(*value) ? Parsed::kOk : Parsed::kOutOfRange;
}

Parsed ParseFloat(std::string_view text, float* value) {
  text = TrimPlus(text);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (stop != end) return Parsed::kWrongType;
  if (error == std::errc::result_out_of_range) return ParseOutOfRange(text, value);
  if (error != std::errc()) return Parsed::kWrongType;
  return std::isfinite(*value) ? Parsed::kOk : Parsed::kNotFinite;
}

// Parses a whole number that is not written as plain digits: "3.0", "3.7", "1e3".
Parsed ParseIntFromReal(std::string_view text, bool truncate, int64_t* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  const std::string_view rest(stop, end - stop);
  if (error == std::errc() && rest.starts_with('.') && IsDigits(rest.substr(1))) {
    const bool whole = rest.find_first_not_of('0', 1) == std::string_view::npos;
    return whole || truncate ? Parsed::kOk : Parsed::kFraction;
  }
  double real = 0;
  const auto [real_stop, real_error] = std::from_chars(text.data(), end, real);
  if (real_stop != end || text.empty()) return Parsed::kWrongType;
  if (real_error != std::errc() || !(std::fabs(real) < 0x1p63)) return Parsed::kOutOfRange;
  *value = static_cast<int64_t>(real);
  return truncate || real == std::trunc(real) ? Parsed::kOk : Parsed::kFraction;
}

Parsed ParseInt(std::string_view text, bool truncate, int64_t* value) {
  text = TrimPlus(text);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (stop == end && error == std::errc()) return Parsed::kOk;
  if (stop == end && error == std::errc::result_out_of_range) return Parsed::kOutOfRange;
  return ParseIntFromReal(text, truncate, value);
}

class CsvDecoder : public RowDecoder {
 public:
  // For rows under one header: which cell belongs to which field, and how many cells a row has.
  struct Layout {
    std::vector<int> cell_of_field;
    size_t cells = 0;
  };

  CsvDecoder(const Schema& schema, std::vector<Layout> layouts, CsvOptions options)
      : schema_(schema),
        missing_(GetMissingValues(schema)),
        layouts_(std::move(layouts)),
        layout_(layouts_.data()),
        options_(options) {}

  absl::Status Decode(std::string_view row, Columns* columns) override;
  void UseLayout(int layout) override { layout_ = &layouts_[static_cast<size_t>(layout)]; }

 private:
  absl::Status DecodeText(std::string_view row, Columns* columns);
  absl::Status WrongCells() const;
  absl::Status DecodeScalar(int f, std::string_view cell, Columns* columns);
  absl::Status DecodeList(int f, std::string_view cell, Columns* columns);
  absl::Status AppendValue(const Field& field, std::string_view cell, Columns* columns,
                           Column* column);
  std::string_view Keep(std::string_view cell, Columns* columns) const;

  const Schema schema_;
  const std::vector<MissingValues> missing_;  // by field
  const std::vector<Layout> layouts_;
  const Layout* layout_;  // for the next rows
  const CsvOptions options_;
  std::vector<std::string_view> cells_;
  std::string scratch_;
};

absl::Status BadValue(const Field& field, std::string_view cell, Parsed parsed) {
  const std::string_view type = ValueTypeName(field.type);
  std::string shown = absl::Utf8SafeCHexEscape(ToAbsl(cell.substr(0, kShownBytes)));
  if (cell.size() > kShownBytes) shown += "...";
  const std::string what = StrCat("column '", field.name, "': '", shown, "' ");
  switch (parsed) {
    case Parsed::kOutOfRange:
      return absl::InvalidArgumentError(StrCat(what, "is out of the range of ",
                                               field.type == ValueType::kInt ? "an " : "a ", type));
    case Parsed::kNotFinite:
      return absl::InvalidArgumentError(
          StrCat(what, "is not a finite number; list it under the input's missing values"));
    case Parsed::kFraction:
      return absl::InvalidArgumentError(
          StrCat(what, "is not an int (type float keeps it, truncate: true cuts it)"));
    case Parsed::kOk:
    case Parsed::kWrongType:
      break;
  }
  if (field.date) return absl::InvalidArgumentError(StrCat(what, "is not a date or an int"));
  return absl::InvalidArgumentError(
      StrCat(what, "is not ", field.type == ValueType::kInt ? "an " : "a ", type));
}

absl::Status CsvDecoder::Decode(std::string_view row, Columns* columns) {
  if (options_.encoding_errors == EncodingErrors::kKeep || IsUtf8(row)) {
    return DecodeText(row, columns);
  }
  switch (options_.encoding_errors) {
    case EncodingErrors::kKeep:
    case EncodingErrors::kError:
      break;
    case EncodingErrors::kReplace:
      return DecodeText(columns->Store(ReplaceNonUtf8(row)), columns);
    case EncodingErrors::kLatin1:
      return DecodeText(columns->Store(Latin1ToUtf8(row)), columns);
  }
  return absl::InvalidArgumentError(
      StrCat("the row is not UTF-8, from '",
             absl::CHexEscape(ToAbsl(row.substr(Utf8PrefixSize(row), kShownWrongBytes))),
             "' on (it can be read with encoding errors keep, replace or latin1)"));
}

absl::Status CsvDecoder::WrongCells() const {
  const std::string names = options_.header ? "the header has " : "the names of columns are ";
  return absl::InvalidArgumentError(
      StrCat("the row has ", cells_.size(), " cells, ", names, layout_->cells));
}

absl::Status CsvDecoder::DecodeText(std::string_view row, Columns* columns) {
  MUSTER_RETURN_IF_ERROR(SplitCsvRow(row, options_, &cells_, &scratch_));
  if (cells_.size() != layout_->cells) return WrongCells();
  const size_t fields = layout_->cell_of_field.size();
  for (size_t f = 0; f < fields; ++f) {
    const std::string_view cell = cells_[layout_->cell_of_field[f]];
    absl::Status status = schema_.fields[f].list ? DecodeList(static_cast<int>(f), cell, columns)
                                                 : DecodeScalar(static_cast<int>(f), cell, columns);
    if (!status.ok()) {
      columns->DropPartialRow();
      return status;
    }
  }
  columns->AddRow();
  return absl::OkStatus();
}

absl::Status CsvDecoder::DecodeScalar(int f, std::string_view cell, Columns* columns) {
  const Field& field = schema_.fields[static_cast<size_t>(f)];
  const MissingValues& missing = missing_[static_cast<size_t>(f)];
  if (field.type != ValueType::kString) cell = TrimSpaces(cell);
  if (!cell.empty() && !missing.Has(cell)) {
    Column* const column = &columns->mutable_column(f);
    MUSTER_RETURN_IF_ERROR(AppendValue(field, cell, columns, column));
    if (!missing.RemoveOnly(static_cast<size_t>(columns->rows()), column)) return absl::OkStatus();
  }
  if (!field.has_default) {
    return absl::InvalidArgumentError(StrCat("column '", field.name, "': no value and no default"));
  }
  columns->AppendDefault(f, field);
  return absl::OkStatus();
}

absl::Status CsvDecoder::DecodeList(int f, std::string_view cell, Columns* columns) {
  const Field& field = schema_.fields[static_cast<size_t>(f)];
  const MissingValues& missing = missing_[static_cast<size_t>(f)];
  Column* const column = &columns->mutable_column(f);
  if (field.type != ValueType::kString) cell = TrimSpaces(cell);
  if (cell.empty() || missing.Has(cell)) return absl::OkStatus();
  for (size_t at = 0; at <= cell.size();) {
    const size_t end = std::min(cell.find(field.separator, at), cell.size());
    MUSTER_RETURN_IF_ERROR(AppendValue(field, cell.substr(at, end - at), columns, column));
    at = end + 1;
  }
  missing.RemoveOnly(column->offsets.back(), column);
  return absl::OkStatus();
}

absl::Status CsvDecoder::AppendValue(const Field& field, std::string_view cell, Columns* columns,
                                     Column* column) {
  if (field.type == ValueType::kString) {
    column->strings.push_back(Keep(cell, columns));
    return absl::OkStatus();
  }
  const std::string_view text = TrimSpaces(cell);
  Parsed parsed;
  if (field.type == ValueType::kFloat) {
    float value = 0;
    parsed = ParseFloat(text, &value);
    column->floats.push_back(value);
  } else {
    int64_t value = 0;
    const std::optional<int64_t> seconds = field.date ? ParseDate(text) : std::nullopt;
    parsed = seconds ? Parsed::kOk : ParseInt(text, field.truncate, &value);
    if (seconds) value = *seconds;
    column->ints.push_back(value);
  }
  return parsed == Parsed::kOk ? absl::OkStatus() : BadValue(field, cell, parsed);
}

// Copies a cell that was unquoted into scratch_, since scratch_ does not live as long as the rows.
std::string_view CsvDecoder::Keep(std::string_view cell, Columns* columns) const {
  const std::less<const char*> less;
  const char* const begin = scratch_.data();
  const bool inside = !less(cell.data(), begin) && less(cell.data(), begin + scratch_.size());
  return inside ? columns->Store(cell) : cell;
}

bool IsNumber(std::string_view text) {
  float value = 0;
  return ParseFloat(TrimSpaces(text), &value) == Parsed::kOk;
}

// Explains what may be wrong if a column is not in the header.
std::string WhyNotThere(const Schema& schema, const std::string& name,
                        const std::vector<std::string>& header) {
  const bool any = std::ranges::any_of(schema.fields, [&header](const Field& field) {
    return std::ranges::find(header, field.name) != header.end();
  });
  if (!any && std::ranges::any_of(header, IsNumber)) {
    return StrCat(
        "; that row looks like data: if the file has no header, give --no-header, or ",
        "'format: {header: false}' in the model file, and --columns if its cells are not ",
        "the inputs in their order");
  }
  return DidYouMean(name, header);
}

absl::StatusOr<CsvDecoder::Layout> MakeLayout(const Schema& schema,
                                              const std::vector<std::string>& header) {
  CsvDecoder::Layout layout;
  layout.cells = header.size();
  for (const Field& field : schema.fields) {
    const auto found = std::find(header.begin(), header.end(), field.name);
    if (found == header.end()) {
      return absl::NotFoundError(StrCat("column '", field.name, "' is not in the header",
                                        WhyNotThere(schema, field.name, header)));
    }
    if (std::find(found + 1, header.end(), field.name) != header.end()) {
      return absl::InvalidArgumentError(
          StrCat("column '", field.name, "' occurs twice in the header"));
    }
    layout.cell_of_field.push_back(static_cast<int>(found - header.begin()));
  }
  return layout;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(
    const Schema& schema, std::span<const std::vector<std::string>> headers, CsvOptions options) {
  MUSTER_RETURN_IF_ERROR(CheckCsvOptions(options));
  if (headers.empty()) return absl::InvalidArgumentError("the columns have no names");
  std::vector<CsvDecoder::Layout> layouts;
  for (const std::vector<std::string>& header : headers) {
    MUSTER_ASSIGN_OR_RETURN(layouts.emplace_back(), MakeLayout(schema, header));
  }
  return std::make_unique<CsvDecoder>(schema, std::move(layouts), options);
}

absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(const Schema& schema,
                                                          const std::vector<std::string>& header,
                                                          CsvOptions options) {
  return NewCsvDecoder(schema, std::span(&header, 1), options);
}

}  // namespace muster::formats
