#include "muster/features/coverage.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/features/ids.h"

namespace muster::features {
namespace {

using formats::ValueType;

constexpr size_t kShownValues = 3;
constexpr double kWorthAWarning = 0.99;
constexpr double kManyUnknown = 0.5;

std::string ExpectedIds(const ColumnSpec& column) {
  switch (column.kind) {
    case ColumnKind::kVocabulary: {
      std::vector<std::string> shown;
      for (const std::string& word : column.words) {
        if (shown.size() == kShownValues) break;
        shown.push_back(Shown(word));
      }
      return StrCat("its words are ", absl::StrJoin(shown, ", "),
                    column.words.size() > shown.size() ? ", ..." : "", " (compared byte by byte)");
    }
    case ColumnKind::kIdentity:
      return StrCat("its ids are 0 to ", column.buckets - 1);
    default:
      break;
  }
  return "an empty value has no id";
}

bool IsLookedAt(ColumnKind kind) {
  return kind == ColumnKind::kVocabulary || kind == ColumnKind::kIdentity ||
         kind == ColumnKind::kHash || kind == ColumnKind::kKeys;
}

}  // namespace

IdCoverage::IdCoverage(const FeatureSpec& spec) {
  for (const ColumnSpec& column : spec.columns) {
    if (!IsLookedAt(column.kind)) continue;
    const int field = spec.schema.Find(column.input);
    const formats::Field& input = spec.schema.fields[static_cast<size_t>(field)];
    Known& known =
        known_.emplace_back(Known{column.kind, field, input.list, input.type, column.buckets});
    for (const std::string& word : column.words) {
      if (input.type == ValueType::kString) {
        known.words.insert(word);
      } else {
        // the words of a valid spec are numbers
        known.numbers.insert(ParseIntWord(word).value_or(0));
      }
    }
    columns_.push_back({.name = column.name, .expects = ExpectedIds(column)});
  }
}

bool IdCoverage::HasId(const Known& known, const formats::Column& values, size_t value) const {
  // In a scalar, '' and -1 count as no value.
  if (known.type == ValueType::kString) {
    const std::string_view text = values.strings[value];
    if (text.empty() && !known.list) return false;
    return known.kind != ColumnKind::kVocabulary || known.words.contains(ToAbsl(text));
  }
  const int64_t number = values.ints[value];
  if (number == -1 && !known.list) return false;
  if (known.kind == ColumnKind::kIdentity) return number >= 0 && number < known.buckets;
  return known.kind != ColumnKind::kVocabulary || known.numbers.contains(number);
}

void IdCoverage::AddColumn(const Known& known, const formats::Columns& rows, Column* column) {
  const formats::Column& values = rows.column(known.field);
  for (size_t row = 0; row < static_cast<size_t>(rows.rows()); ++row) {
    const size_t begin = known.list ? values.offsets[row] : row;
    const size_t end = known.list ? values.offsets[row + 1] : row + 1;
    size_t value = begin;
    while (value < end && !HasId(known, values, value)) ++value;
    if (value < end) continue;
    ++column->without;
    for (value = begin; value < end && column->values.size() < kShownValues; ++value) {
      std::string shown = known.type == ValueType::kString ? Shown(values.strings[value])
                                                           : StrCat(values.ints[value]);
      const auto found = std::find(column->values.begin(), column->values.end(), shown);
      if (found == column->values.end()) column->values.push_back(std::move(shown));
    }
  }
}

void IdCoverage::Add(const formats::Columns& rows) {
  for (size_t i = 0; i < known_.size(); ++i) AddColumn(known_[i], rows, &columns_[i]);
  rows_ += static_cast<uint64_t>(rows.rows());
}

void CoverageWatch::Add(const formats::Columns& rows) {
  if (!done_) coverage_.Add(rows);
}

std::vector<std::string> CoverageWatch::ConsumeWarnings(bool ended) {
  std::vector<std::string> warnings;
  if (done_ || coverage_.rows() == 0 || (coverage_.rows() < kRows && !ended)) return warnings;
  done_ = true;
  const auto rows = static_cast<double>(coverage_.rows());
  for (const IdCoverage::Column& column : coverage_.columns()) {
    const double share = static_cast<double>(column.without) / rows;
    if (share <= kWorthAWarning) continue;
    warnings.push_back(absl::StrFormat(
        "column '%s' finds no id in %.4g %% of the first %d rows: values seen are %s, %s",
        column.name, 100 * share, coverage_.rows(),
        column.values.empty() ? "none" : absl::StrJoin(column.values, ", "), column.expects));
  }
  return warnings;
}

std::vector<std::string> WarnOfUnknownWords(const FeatureSpec& spec,
                                            const std::vector<WordCount>& counts) {
  std::vector<std::string> warnings;
  for (const WordCount& count : counts) {
    const ColumnSpec* const column = spec.Find(count.column);
    if (count.values == 0 || column == nullptr) continue;
    const double share = static_cast<double>(count.unknown) / static_cast<double>(count.values);
    if (share <= kManyUnknown) continue;
    warnings.push_back(absl::StrFormat(
        "column '%s' does not know %.4g %% of its values, such as %s: %s; write the values as in "
        "the training, or train again with these words",
        count.column, 100 * share, count.example, ExpectedIds(*column)));
  }
  return warnings;
}

}  // namespace muster::features
