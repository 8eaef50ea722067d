#include <algorithm>
#include <functional>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

#include "muster/base/utf8.h"
#include "muster/formats/csv.h"
#include "muster/formats/data_format.h"
#include "muster/formats/dates.h"
#include "muster/formats/missing.h"
#include "muster/formats/near_column.h"
#include "muster/formats/text_number.h"

namespace muster::formats {
namespace {

constexpr size_t kShownBytes = 60;

bool IsNumber(std::string_view text) {
  float value = 0;
  return ParseFloat(TrimSpaces(text), &value) == ParsedNumber::kOk;
}

class CsvDecoder : public RowDecoder {
 public:
  // For rows under one header: which cell belongs to which field, and how many cells a row has.
  struct Layout {
    std::vector<int> cell_of_field;
    size_t cells = 0;
  };

  CsvDecoder(const Schema& schema, const std::vector<std::string>& names,
             std::vector<Layout> layouts, CsvOptions options)
      : schema_(schema),
        names_(names),
        missing_(GetMissingValues(schema)),
        layouts_(std::move(layouts)),
        layout_(layouts_.data()),
        options_(options) {}

  absl::Status Decode(std::string_view row, Columns* columns) override;
  void UseLayout(int layout) override { layout_ = &layouts_[static_cast<size_t>(layout)]; }

 private:
  absl::Status DecodeText(std::string_view row, Columns* columns);
  absl::Status WrongCells() const;
  // Adds to the error of a row of data without a header that it may be the header.
  absl::Status AddHeaderHint(const absl::Status& status) const;
  absl::Status DecodeScalar(int f, std::string_view cell, Columns* columns);
  absl::Status DecodeList(int f, std::string_view cell, Columns* columns);
  absl::Status AppendValue(const Field& field, std::string_view cell, Columns* columns,
                           Column* column);
  std::string_view Keep(std::string_view cell, Columns* columns) const;

  const Schema schema_;
  const std::vector<std::string> names_;      // of the cells, in the first layout
  const std::vector<MissingValues> missing_;  // by field
  const std::vector<Layout> layouts_;
  const Layout* layout_;  // for the next rows
  const CsvOptions options_;
  std::vector<std::string_view> cells_;
  std::string scratch_;
};

absl::Status BadValue(const Field& field, std::string_view cell, ParsedNumber parsed) {
  std::string shown = absl::Utf8SafeCHexEscape(ToAbsl(cell.substr(0, kShownBytes)));
  if (cell.size() > kShownBytes) shown += "...";
  return absl::InvalidArgumentError(StrCat("column '", field.name, "': '", shown, "' ",
                                           DescribeNotRead(field, TrimSpaces(cell), parsed)));
}

absl::Status CsvDecoder::Decode(std::string_view row, Columns* columns) {
  if (options_.encoding_errors == EncodingErrors::kKeep || IsUtf8(row)) {
    return DecodeText(row, columns);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ConvertCsvRow(row, options_.encoding_errors));
  return DecodeText(columns->Store(text), columns);
}

// Explains a row that `used` does not divide at all, but another delimiter does.
std::string HintAtDelimiter(std::string_view row, char used) {
  constexpr std::string_view kOthers = ",\t;|\x01";
  const auto count = [row](char delimiter) { return std::ranges::count(row, delimiter); };
  const char other = *std::ranges::max_element(kOthers, {}, count);
  if (count(used) > 0 || count(other) == 0) return "";
  const auto name = [](char delimiter) {
    return delimiter == '\t' ? "tab" : StrCat("'", PrintDelimiter(delimiter), "'");
  };
  return StrCat("; its cells are divided by ", name(other), ", it seems, and not by ", name(used),
                ", as --delimiter or 'format: {delimiter: ...}' of the model file says: give ",
                "--delimiter ", name(other));
}

absl::Status CsvDecoder::WrongCells() const {
  const std::string names = options_.header ? "the header has " : "the names of columns are ";
  const std::string hint = cells_.size() == 1 ? HintAtDelimiter(cells_[0], options_.delimiter) : "";
  return absl::InvalidArgumentError(
      StrCat("the row has ", cells_.size(), " cells, ", names, layout_->cells, hint));
}

absl::Status CsvDecoder::AddHeaderHint(const absl::Status& status) const {
  const bool are_words = std::ranges::none_of(
      cells_, [](std::string_view cell) { return cell.empty() || IsNumber(cell); });
  if (!are_words) return status;
  const bool has_names = std::ranges::any_of(schema_.fields, [this](const Field& field) {
    return std::ranges::find(cells_, field.name) != cells_.end();
  });
  return absl::InvalidArgumentError(
      StrCat(status.message(), "; the row looks like a header: if it is one, give --header",
             has_names ? "" : StrCat(" --columns ", absl::StrJoin(names_, ",")),
             ", since the model was made for data without one"));
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
      return options_.header ? status : AddHeaderHint(status);
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
    const size_t found = field.separator == '\0' ? cell.npos : cell.find(field.separator, at);
    const size_t end = std::min(found, cell.size());
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
  ParsedNumber parsed;
  if (field.type == ValueType::kFloat) {
    float value = 0;
    parsed = ParseFloat(text, &value);
    column->floats.push_back(value);
  } else {
    int64_t value = 0;
    const std::optional<int64_t> seconds =
        field.date ? ParseDateCell(text, field.date_order) : std::nullopt;
    parsed = seconds ? ParsedNumber::kOk : ParseInt(text, field.truncate, &value);
    if (seconds) value = *seconds;
    column->ints.push_back(value);
  }
  return parsed == ParsedNumber::kOk ? absl::OkStatus() : BadValue(field, cell, parsed);
}

// Copies a cell that was unquoted into scratch_, since scratch_ does not live as long as the rows.
std::string_view CsvDecoder::Keep(std::string_view cell, Columns* columns) const {
  const std::less<const char*> less;
  const char* const begin = scratch_.data();
  const bool inside = !less(cell.data(), begin) && less(cell.data(), begin + scratch_.size());
  return inside ? columns->Store(cell) : cell;
}

// Explains what may be wrong if a column is not in the header.
std::string WhyNotThere(const Schema& schema, const std::string& name,
                        const std::vector<std::string>& header, char delimiter) {
  if (header.size() == 1) {
    const std::string hint = HintAtDelimiter(header[0], delimiter);
    if (!hint.empty()) return hint;
  }
  const bool any = std::ranges::any_of(schema.fields, [&header](const Field& field) {
    return std::ranges::find(header, field.name) != header.end();
  });
  if (!any && std::ranges::any_of(header, IsNumber)) {
    return StrCat(
        "; that row looks like data: if the file has no header, give --no-header, or ",
        "'format: {header: false}' in the model file, and --columns if its cells are not ",
        "the inputs in their order");
  }
  return DidYouMeanColumn(name, header);
}

absl::StatusOr<CsvDecoder::Layout> MakeLayout(const Schema& schema,
                                              const std::vector<std::string>& header,
                                              char delimiter) {
  CsvDecoder::Layout layout;
  layout.cells = header.size();
  for (const Field& field : schema.fields) {
    const auto found = std::find(header.begin(), header.end(), field.name);
    if (found == header.end()) {
      return absl::NotFoundError(StrCat("column '", field.name, "' is not in the header",
                                        WhyNotThere(schema, field.name, header, delimiter)));
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
    MUSTER_ASSIGN_OR_RETURN(layouts.emplace_back(), MakeLayout(schema, header, options.delimiter));
  }
  return std::make_unique<CsvDecoder>(schema, headers.front(), std::move(layouts), options);
}

absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(const Schema& schema,
                                                          const std::vector<std::string>& header,
                                                          CsvOptions options) {
  return NewCsvDecoder(schema, std::span(&header, 1), options);
}

}  // namespace muster::formats
