#include "muster/model/draft/draft_column.h"

#include <algorithm>

#include "absl/strings/numbers.h"

#include "muster/base/nearest.h"
#include "muster/base/number_text.h"
#include "muster/base/utf8.h"
#include "muster/data/profile/find_columns.h"
#include "muster/model/draft/yaml_text.h"

namespace muster::model {
namespace {

using data::ColumnProfile;
using formats::ValueType;
using Kind = ColumnProfile::Kind;
using Use = DraftColumn::Use;
using Task = DraftLabel::Task;

constexpr uint64_t kMaxVocabulary = 200;
constexpr uint64_t kMaxWordClasses = 1000;
// up to so many different whole numbers are classes, not amounts
constexpr uint64_t kMaxNumberClasses = 20;
// With fewer rows, that no value occurs twice says nothing.
constexpr uint64_t kMinRowsOfIds = 20;
// A long tail means that the largest number is so many deviations above the mean.
constexpr double kLongTail = 8;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// True for "id", "user_id", "PassengerId", "uuid".
bool IsNamedAsId(const std::string& name) {
  const std::string lower = Lower(name);
  for (const std::string_view word : {"id", "uuid", "guid", "index", "key", "rowid"}) {
    if (lower == word) return true;
  }
  return name.ends_with("Id") || name.ends_with("ID") || lower.ends_with("_id") ||
         lower.ends_with("-id") || lower.ends_with(" id") || lower.ends_with("uuid");
}

// Whether the values only name the rows: no value occurs twice, and they are text, or whole numbers
// that count the rows or belong to a column called an ID. Amounts may all be different, too.
bool IsId(const ColumnProfile& column) {
  if (!column.never_twice || column.is_list() || column.values < kMinRowsOfIds) return false;
  if (column.kind == Kind::kText) return true;
  if (column.kind != Kind::kInt) return false;
  constexpr double kDense = 2;
  const bool counts_rows =
      column.numbers.max - column.numbers.min < kDense * static_cast<double>(column.values);
  return column.ascending || counts_rows || IsNamedAsId(column.name);
}

// Returns twice the number of distinct values, rounded to 1, 2 or 5 times a power of ten, so that
// at most two in five values share their bucket with another one; ten times the number if not all
// distinct values were counted.
int64_t RoundBuckets(const ColumnProfile& column) {
  const uint64_t least = (column.more_distinct ? 20 : 2) * column.distinct;
  for (int64_t power = 100;; power *= 10) {
    for (const int64_t times : {1, 2, 5}) {
      if (static_cast<uint64_t>(power * times) >= least) return power * times;
    }
  }
}

DraftColumn LeftOut(const ColumnProfile& column, std::string why) {
  return {.profile = &column, .why = std::move(why)};
}

DraftColumn MakeNumber(const ColumnProfile& column) {
  DraftColumn draft = {.profile = &column, .use = Use::kNumber};
  if (column.is_list()) {
    if (column.least_in_row != column.most_in_row) {
      return LeftOut(column, StrCat("it has ", column.least_in_row, " to ", column.most_in_row,
                                    " numbers per row; a sequence_numeric column can pool them"));
    }
    draft.shape = static_cast<int>(column.most_in_row);
  }
  const data::NumberSums& numbers = column.numbers;
  draft.log1p = draft.shape == 1 && column.logarithms.count > 0 && numbers.stddev() > 0 &&
                numbers.max > numbers.mean + kLongTail * numbers.stddev();
  return draft;
}

DraftColumn MakeText(const ColumnProfile& column) {
  DraftColumn draft = {.profile = &column, .use = Use::kVocabulary};
  const bool are_utf8 = std::ranges::all_of(
      column.words, [](const ColumnProfile::Counted& word) { return IsUtf8(word.first); });
  if (column.more_distinct || column.distinct > kMaxVocabulary || !are_utf8) {
    draft.use = Use::kHash;
    draft.buckets = RoundBuckets(column);
    return draft;
  }
  for (const auto& word : column.words) draft.words.push_back(word.first);
  return draft;
}

// Returns the distinct whole numbers, ascending: "1", "1.0" and "+1" are the same.
std::vector<int64_t> SortedInts(const ColumnProfile& column) {
  std::vector<int64_t> ints;
  for (const auto& word : column.words) {
    double value = 0;
    if (!absl::SimpleAtod(word.first, &value)) return {};
    ints.push_back(static_cast<int64_t>(value));
  }
  std::ranges::sort(ints);
  ints.erase(std::unique(ints.begin(), ints.end()), ints.end());
  return ints;
}

absl::StatusOr<DraftLabel> MakeTextLabel(const ColumnProfile& column) {
  if (column.more_distinct || column.distinct > kMaxWordClasses) {
    return absl::InvalidArgumentError(
        StrCat("label '", column.name, "' is text with ", column.more_distinct ? "over " : "",
               GroupDigits(column.distinct), " different values, which are too many classes; ",
               "give the column to predict"));
  }
  DraftLabel label = {.profile = &column, .classes = column.distinct};
  label.task = column.distinct == 2 ? Task::kBinary : Task::kMultiClass;
  for (const auto& word : column.words) label.words.push_back(word.first);
  std::ranges::sort(label.words);
  return label;
}

DraftLabel MakeNumberLabel(const ColumnProfile& column) {
  DraftLabel label = {.profile = &column, .task = Task::kRegression};
  if (column.kind != Kind::kInt || column.more_distinct) return label;
  const std::vector<int64_t> ints = SortedInts(column);
  if (ints.size() < 2 || ints.size() > kMaxNumberClasses) return label;
  label.task = ints.size() == 2 ? Task::kBinary : Task::kMultiClass;
  label.classes = ints.size();
  if (ints.front() == 0 && ints.back() == static_cast<int64_t>(ints.size()) - 1) return label;
  if (column.stored == ValueType::kFloat) {  // a float column cannot have words
    return {.profile = &column, .task = Task::kRegression};
  }
  for (const int64_t value : ints) label.words.push_back(StrCat(value));
  return label;
}

}  // namespace

std::string_view TaskName(Task task) {
  switch (task) {
    case Task::kBinary:
      return "binary";
    case Task::kMultiClass:
      return "multi_class";
    case Task::kRegression:
      break;
  }
  return "regression";
}

std::string DescribeUnread(const ColumnProfile& column) {
  const std::string example = CommentText(column.unread_value);
  switch (column.unread) {
    case ColumnProfile::Unread::kCommaNumbers:
      return StrCat("numbers with a comma, such as ", example,
                    ", are read as words; write them with a point and no other sign, as 1234.5");
    case ColumnProfile::Unread::kMonthOrDay:
      return StrCat("dates such as ", example, ", of which month and day could be exchanged, are ",
                    "read as words; write them as 2026-11-24");
    case ColumnProfile::Unread::kNothing:
      break;
  }
  return "";
}

DraftColumn MakeDraftColumn(const ColumnProfile& column) {
  if (column.kind == Kind::kNothing) return LeftOut(column, "no row has a value");
  // If there are missing values besides a single word, whether the word is there says something.
  const bool can_be_missing = column.kind == Kind::kText && column.missing > 0;
  if (column.distinct == 1 && !column.more_distinct && !can_be_missing) {
    return LeftOut(column, "all values are the same");
  }
  if (IsId(column) && column.unread != ColumnProfile::Unread::kNothing) {
    return LeftOut(column, StrCat("all its values are different, and ", DescribeUnread(column)));
  }
  if (IsId(column)) {
    return LeftOut(
        column,
        StrCat("all its ",
               column.more_distinct ? "values" : StrCat(GroupDigits(column.values), " values"),
               " are different, as those of an ID are"));
  }
  if (column.is_number()) return MakeNumber(column);
  if (column.kind == Kind::kDate && !column.is_list() && column.stored == ValueType::kString) {
    return {.profile = &column, .use = Use::kDate};
  }
  return MakeText(column);
}

absl::StatusOr<DraftLabel> MakeDraftLabel(const data::Profile& profile, const std::string& name) {
  const ColumnProfile* const column = profile.Find(name);
  if (column == nullptr) {
    const std::string what = StrCat("label '", name, "' is no column of the data");
    const std::vector<std::string>& names = profile.format.columns;
    if (names.empty() || names.front() != data::kFirstColumnName) {
      return absl::NotFoundError(StrCat(what, DidYouMean(name, profile.names())));
    }
    return absl::NotFoundError(
        StrCat(what, ", which has no header: its columns are named ", names.front(), " to ",
               names.back(), "; give the label as one of these, such as --label ", names.back(),
               ", or name all columns with --columns A,B,..."));
  }
  const std::string label = StrCat("label '", name, "'");
  if (column->is_list()) {
    return absl::InvalidArgumentError(
        StrCat(label, " has several values per row; docs/spec.md (head) says how to learn them"));
  }
  if (column->kind == Kind::kNothing) {
    return absl::InvalidArgumentError(StrCat(label, " has no value in any row"));
  }
  if (column->distinct == 1 && !column->more_distinct) {
    return absl::InvalidArgumentError(
        StrCat(label, " is '", column->words[0].first, "' in all rows: there is nothing to learn"));
  }
  if (column->is_number()) return MakeNumberLabel(*column);
  return MakeTextLabel(*column);
}

}  // namespace muster::model
