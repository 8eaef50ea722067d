#include "muster/model/draft/draft_column.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "muster/base/number_text.h"
#include "muster/base/utf8.h"
#include "muster/data/profile/find_columns.h"
#include "muster/formats/near_column.h"
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
// Fractions that come so often each may be classes.
constexpr uint64_t kLeastRepeats = 5;
// With fewer rows, that no value occurs twice says nothing.
constexpr uint64_t kMinRowsOfIds = 20;
constexpr size_t kShownBytes = 30;
// A column that nearly all rows, 99 of 100, have no value of needs at least so many values. On made
// tables of 800 rows, 2 values made the predictions of others worse, and 8 made them better.
constexpr uint64_t kLeastValues = 5;
constexpr uint64_t kNearlyAll = 100;
// A long tail means that the largest number is so many deviations above the mean.
constexpr double kLongTail = 8;

// Numbers that differ by a smaller share of their size are the same for a float, nearly. A model
// file takes means and deviations between the other two.
constexpr double kLeastRange = 1e-6;
constexpr double kSmallest = 1e-29;
constexpr double kLargest = 1e30;

// True for "id", "user_id", "PassengerId", "uuid".
bool IsNamedAsId(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
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

bool IsNearlyEmpty(const ColumnProfile& column) {
  const uint64_t present = column.rows - column.missing;
  return present < kLeastValues && present * kNearlyAll <= column.rows;
}

// Whether most rows have no value. On made tables a flag for it then raised the AUC on other rows
// by 0.005 to 0.2 where it says something about the label, and cost at most 0.005 where not.
bool IsMostlyEmpty(const ColumnProfile& column) {
  return !column.is_list() && column.missing * 2 > column.rows;
}

DraftColumn LeftOut(const ColumnProfile& column, std::string why) {
  return {.profile = &column, .why = std::move(why)};
}

DraftColumn MakeNumber(const ColumnProfile& column) {
  DraftColumn draft = {
      .profile = &column, .use = Use::kNumber, .missing_flag = IsMostlyEmpty(column)};
  if (column.is_list()) {
    if (column.least_in_row != column.most_in_row) {
      return LeftOut(column, StrCat("it has ", column.least_in_row, " to ", column.most_in_row,
                                    " numbers per row; a sequence_numeric column can pool them"));
    }
    draft.shape = static_cast<int>(column.most_in_row);
  }
  const data::NumberSums& numbers = column.numbers;
  const double largest = std::max(std::fabs(numbers.min), std::fabs(numbers.max));
  if (numbers.max - numbers.min <= std::max(kLeastRange * largest, kSmallest)) {
    return LeftOut(column, "all values are nearly the same");
  }
  if (largest > kLargest) return LeftOut(column, "its largest value is too large to be scaled");
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
  for (const auto& word : column.words) {
    // A -1 of a typed int has no id.
    if (column.stored != ValueType::kInt || word.first != "-1") draft.words.push_back(word.first);
  }
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
  const std::string unread = DescribeUnread(column);
  const std::string advice = unread.empty() ? "give the column to predict" : unread;
  if (column.more_distinct || column.distinct > kMaxWordClasses) {
    return absl::InvalidArgumentError(StrCat(
        "label '", column.name, "' is text with ", column.more_distinct ? "over " : "",
        GroupDigits(column.distinct), " different values, which are too many classes; ", advice));
  }
  if (column.never_twice && column.values >= kMinRowsOfIds) {
    return absl::InvalidArgumentError(
        StrCat("label '", column.name, "' is text, and all its ", GroupDigits(column.values),
               " values are different: there is nothing to learn; ", advice));
  }
  DraftLabel label = {.profile = &column, .classes = column.distinct};
  label.task = column.distinct == 2 ? Task::kBinary : Task::kMultiClass;
  for (const auto& word : column.words) label.words.push_back(word.first);
  std::ranges::sort(label.words);
  // The second class is the one whose probability is given. In the languages whose yes is "ja", no
  // comes after it.
  if (label.task == Task::kBinary && absl::AsciiStrToLower(label.words[0]) == "ja") {
    std::swap(label.words[0], label.words[1]);
  }
  return label;
}

// Says that the few numbers of a label are learned as amounts, and how to learn them as classes.
std::string NoteAmounts(const ColumnProfile& column) {
  const std::string name = YamlText(column.name);
  const std::string text = StrCat("its ", column.distinct,
                                  " different numbers are learned as amounts; to learn them as "
                                  "classes, ");
  if (column.stored == ValueType::kFloat) {
    return StrCat(text, "write them as the whole numbers from 0 in the data");
  }
  std::vector<std::string> words;
  for (const auto& word : column.words) words.push_back(YamlText(word.first));
  std::ranges::sort(words);
  const std::string head =
      words.size() == 2 ? "binary" : StrCat("{multi_class: ", words.size(), "}");
  return StrCat(text, "make the input a string (", name,
                ": string), and write label: {input: ", name, ", words: [",
                absl::StrJoin(words, ", "), "]} and head: ", head);
}

std::string NoteClasses(const ColumnProfile& column, uint64_t classes) {
  const std::string name = YamlText(column.name);
  return StrCat("its ", classes, " different numbers are learned as classes; to learn them as ",
                "amounts, make the input a float (", name, ": float), and write label: ", name,
                " and head: regression");
}

DraftLabel MakeNumberLabel(const ColumnProfile& column) {
  DraftLabel label = {.profile = &column, .task = Task::kRegression};
  const bool are_few = !column.more_distinct && column.distinct <= kMaxNumberClasses &&
                       column.distinct * kLeastRepeats <= column.values;
  if (column.kind != Kind::kInt || column.more_distinct) {
    if (are_few) label.note = NoteAmounts(column);
    return label;
  }
  const std::vector<int64_t> ints = SortedInts(column);
  if (ints.size() < 2 || ints.size() > kMaxNumberClasses) return label;
  label.task = ints.size() == 2 ? Task::kBinary : Task::kMultiClass;
  label.classes = ints.size();
  const bool count_from_0 =
      ints.front() == 0 && ints.back() == static_cast<int64_t>(ints.size()) - 1;
  if (!count_from_0) {
    for (const int64_t value : ints) label.words.push_back(StrCat(value));
  }
  if (!count_from_0 || ints.size() > 2) label.note = NoteClasses(column, label.classes);
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

namespace {

std::string DescribeOddWords(const ColumnProfile& column) {
  constexpr size_t kShownWords = 3;
  std::vector<std::string> shown, marks;
  for (const auto& [word, times] : column.odd_words) {
    if (shown.size() == kShownWords) break;
    shown.push_back(StrCat("'", CommentText(word), "' (", GroupDigits(times), ")"));
    marks.push_back(CommentText(word));
  }
  const bool more = column.odd_words.size() > shown.size();
  return StrCat(GroupDigits(column.numbers_in_text), " of ", GroupDigits(column.values),
                " values are numbers, but all are read as words because of ",
                absl::StrJoin(shown, ", "), more ? " and others" : "",
                "; if these stand for missing values, give --missing ", absl::StrJoin(marks, ","),
                more ? ",..." : "");
}

}  // namespace

std::string DescribeUnread(const ColumnProfile& column) {
  const std::string example = CommentText(column.unread_value);
  switch (column.unread) {
    case ColumnProfile::Unread::kCommaNumbers:
      return StrCat("numbers with a comma, such as ", example,
                    ", are read as words; write them with a point and no other sign, as 1234.5");
    case ColumnProfile::Unread::kNumbersWithUnit:
      return StrCat("numbers with a sign, such as ", example,
                    ", are read as words; write the numbers alone, as 1234.5");
    case ColumnProfile::Unread::kMonthOrDay:
      return StrCat("dates such as ", example, ", of which month and day could be exchanged, are ",
                    "read as words; give --dates month_first or --dates day_first, whichever ",
                    "fits all of them, or write them as 2026-11-24");
    case ColumnProfile::Unread::kShortDates:
      return StrCat("dates such as ", example,
                    ", with a year of two digits, are read as words; give --dates month_first or ",
                    "--dates day_first (for years of 1969 to 2068), or write them as 2026-11-24");
    case ColumnProfile::Unread::kTimes:
      return StrCat("times such as ", example, " are read as words; write them as 13:05 or ",
                    "13:05:09 or 1:05 PM, or as a number, of minutes for instance");
    case ColumnProfile::Unread::kNumbersAndWords:
      return DescribeOddWords(column);
    case ColumnProfile::Unread::kNothing:
      break;
  }
  const auto bytes = std::ranges::find_if(
      column.words, [](const ColumnProfile::Counted& word) { return !IsUtf8(word.first); });
  if (bytes == column.words.end()) return "";
  return StrCat("text that is not UTF-8, such as ",
                absl::CHexEscape(ToAbsl(bytes->first.substr(0, kShownBytes))),
                ", keeps its bytes; give --encoding-errors latin1 if it is Latin-1 (as files of ",
                "Excel may be), or convert it: iconv -f CP1252 -t UTF-8");
}

std::string WhyLeftOut(const data::Profile& profile) {
  if (profile.is_parquet)
    return "is a struct, a map or a list of lists; write its fields as columns";
  return profile.type == formats::FileFormat::kCsv ? "occurs twice in the header; rename one of "
                                                     "the columns, or name all by --columns A,B,..."
                                                   : "has values of two types, or nested ones";
}

DraftColumn MakeDraftColumn(const ColumnProfile& column) {
  if (column.kind == Kind::kNothing) return LeftOut(column, "no row has a value");
  if (IsNearlyEmpty(column)) {
    return LeftOut(column, StrCat("only ", column.rows - column.missing, " of ",
                                  GroupDigits(column.rows), " rows have a value"));
  }
  // If there are missing values besides a single word, whether the word is there says something.
  const bool can_be_missing = column.kind == Kind::kText && column.missing > 0;
  if (column.distinct == 1 && !column.more_distinct && !can_be_missing) {
    return LeftOut(column, "all values are the same");
  }
  if (IsId(column) && column.unread != ColumnProfile::Unread::kNothing) {
    return LeftOut(column, StrCat("all its values are different, and ", DescribeUnread(column)));
  }
  if (IsId(column)) {
    DraftColumn draft = LeftOut(
        column,
        StrCat("all its ",
               column.more_distinct ? "values" : StrCat(GroupDigits(column.values), " values"),
               " are different, as those of an ID are"));
    draft.is_id = true;
    return draft;
  }
  // The same ID in several rows says something, but its size does not.
  const bool is_code = column.kind == Kind::kInt && !column.is_list() && IsNamedAsId(column.name);
  if (column.is_number() && !is_code) return MakeNumber(column);
  if (column.is_seconds() && !column.is_list() && column.stored == ValueType::kString) {
    return {.profile = &column, .use = Use::kDate, .missing_flag = IsMostlyEmpty(column)};
  }
  return MakeText(column);
}

absl::StatusOr<DraftLabel> MakeDraftLabel(const data::Profile& profile, const std::string& name) {
  const ColumnProfile* const column = profile.Find(name);
  if (column == nullptr) {
    if (std::ranges::find(profile.left_out, name) != profile.left_out.end()) {
      return absl::InvalidArgumentError(StrCat("label '", name, "' ", WhyLeftOut(profile)));
    }
    const std::string what = StrCat("label '", name, "' is no column of the data");
    if (profile.columns.size() == 1 && profile.names().front().find(' ') != std::string::npos) {
      return absl::NotFoundError(StrCat(
          what, ", whose only column is '", CommentText(profile.names().front()),
          "'; if single spaces are between the cells, give --delimiter ' '; turn longer ones into ",
          "single ones first: tr -s ' ' < old.txt > new.txt"));
    }
    const std::vector<std::string>& names = profile.format.columns;
    if (names.empty() || names.front() != data::kFirstColumnName) {
      return absl::NotFoundError(StrCat(what, formats::DidYouMeanColumn(name, profile.names())));
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
    const std::string others =
        column->marks.empty()
            ? ""
            : StrCat(" but those with '", column->marks[0].first, "', which counts as missing");
    return absl::InvalidArgumentError(StrCat(label, " is '", column->words[0].first,
                                             "' in all rows", others,
                                             ": there is nothing to learn"));
  }
  if (column->is_number()) return MakeNumberLabel(*column);
  return MakeTextLabel(*column);
}

}  // namespace muster::model
