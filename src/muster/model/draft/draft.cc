#include "muster/model/draft/draft.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/base/number_text.h"
#include "muster/base/utf8.h"
#include "muster/model/draft/draft_doubts.h"
#include "muster/model/draft/draft_length.h"
#include "muster/model/draft/draft_model.h"
#include "muster/model/draft/yaml_text.h"

namespace muster::model {
namespace {

using data::ColumnProfile;
using formats::ValueType;
using Kind = ColumnProfile::Kind;
using Task = DraftLabel::Task;
using Use = DraftColumn::Use;

// With fewer rows a network is no better than a linear model.
constexpr uint64_t kMinRowsOfNetwork = 1000;
// A column of up to so many words gets one network input per word; a column of more words gets an
// embedding.
constexpr uint64_t kMaxIndicator = 50;
constexpr int kEmbedding = 8;
// So many columns are named in an error.
constexpr size_t kToldColumns = 5;

std::string TopWords(const ColumnProfile& column, size_t count) {
  std::vector<std::string> words;
  for (const auto& [word, times] : column.words) {
    if (words.size() == count) break;
    words.push_back(StrCat(CommentText(word), " (", GroupDigits(times), ")"));
  }
  return absl::StrJoin(words, ", ");
}

class DraftWriter {
 public:
  DraftWriter(const data::Profile& profile, const Draft& draft, const DraftRequest& request)
      : profile_(profile), draft_(draft), request_(request) {
    for (const ColumnProfile& column : profile.columns) taken_.insert(column.name);
  }

  std::string Write() {
    const std::string columns = WriteColumns();
    return StrCat(WriteTop(), WriteFormat(), WriteInputs(), WriteLabel(), "\ncolumns:\n", columns,
                  WriteDraftModel(draft_, parts_),
                  absl::StrFormat("\ntrain: {batch_size: %d, epochs: %d}\n", draft_.batch_size,
                                  draft_.epochs));
  }

 private:
  std::string WriteTop() const {
    return StrCat("# Written by `muster init` from ", CommentText(request_.data_name), ": ",
                  GroupDigits(profile_.rows), " rows, ", profile_.columns.size(), " columns.\n",
                  "# docs/spec.md says what else can be written here.\n\n");
  }

  std::string WriteFormat() const {
    const formats::DataFormat& format = profile_.format;
    std::vector<std::string> parts;
    const auto add = [&parts](std::string_view key, std::string_view value) {
      parts.push_back(StrCat("  ", key, ": ", value, "\n"));
    };
    if (format.type) add("type", formats::FileFormatName(*format.type));
    if (format.delimiter) {
      add("delimiter", YamlText(formats::PrintDelimiter(*format.delimiter)));
    }
    if (format.header) add("header", *format.header ? "true" : "false");
    if (!format.columns.empty()) add("columns", YamlList(format.columns, 11, 12));
    if (format.trim) add("trim", *format.trim ? "true" : "false");
    if (format.quote) add("quote", YamlText(formats::PrintQuote(*format.quote)));
    if (format.missing) add("missing", YamlList(*format.missing, 11, 12));
    if (format.encoding_errors) {
      add("encoding_errors", formats::EncodingErrorsName(*format.encoding_errors));
    }
    if (parts.empty()) return "";
    return StrCat("# How the files are to be read.\nformat:\n", absl::StrJoin(parts, ""), "\n");
  }

  // Returns ", missing: [...]" with the texts that stand for a missing value; "" if there are none.
  static std::string Missing(const ColumnProfile& column) {
    if (column.marks.empty()) return "";
    std::vector<std::string> marks;
    for (const auto& mark : column.marks) marks.push_back(mark.first);
    return StrCat(", missing: ", YamlList(marks, 0, 0));
  }

  static std::string InputType(const DraftColumn& column) {
    const ColumnProfile& profile = *column.profile;
    const std::string missing = Missing(profile);
    if (column.use == Use::kNumber) {
      // Later data may also have fractions.
      if (profile.is_list()) return StrCat("{type: float, list: true", missing, "}");
      return missing.empty() ? "float" : StrCat("{type: float", missing, "}");
    }
    if (column.use == Use::kDate) {
      const std::string_view order = formats::DateOrderName(profile.date_order);
      return absl::StrFormat("{type: int, date: %s, default: %d%s}", order.empty() ? "true" : order,
                             std::llround(profile.numbers.mean), missing);
    }
    // -1 has no id; CSV stores text, in which no value is "".
    const bool is_int = profile.stored == ValueType::kInt;
    if (profile.is_list()) {
      const std::string separator =
          profile.separator == '\0'
              ? ""
              : StrCat(", separator: ", YamlText(std::string(1, profile.separator)));
      return StrCat("{type: ", is_int ? "int" : "string", ", list: true", separator, missing, "}");
    }
    if (is_int) return StrCat("{type: int, default: -1", missing, "}");
    return missing.empty() ? "string" : StrCat("{type: string", missing, "}");
  }

  // Says how `predict` writes an ID beside each prediction.
  static std::string KeyHint(const DraftColumn& column, const std::string& name) {
    const bool is_int = column.profile->stored == ValueType::kInt;
    return StrCat("  # To have it beside each prediction, write it here as ", name, ": ",
                  is_int ? "int" : "string", ", and key: ", name, " below.\n");
  }

  std::string WriteInputs() const {
    std::string text = "inputs:\n";
    for (const DraftColumn& column : draft_.columns) {
      const std::string name = YamlText(column.profile->name);
      if (column.use == Use::kLeftOut) {
        text +=
            StrCat("  # ", CommentText(column.profile->name), " is left out: ", column.why, ".\n");
        if (column.is_id) text += KeyHint(column, name);
        continue;
      }
      if (const std::string unread = DescribeUnread(*column.profile); !unread.empty()) {
        text += StrCat("  # ", CommentText(column.profile->name), ": ", unread, ".\n");
      }
      text += StrCat("  ", name, ": ", InputType(column), "  # ", DescribeColumn(*column.profile),
                     "\n");
    }
    for (const std::string& name : profile_.left_out) {
      text += StrCat("  # ", CommentText(name), " is left out: it ", WhyLeftOut(profile_), ".\n");
    }
    const DraftLabel& label = draft_.label;
    text += StrCat("  ", YamlText(label.profile->name), ": ");
    const bool is_number =
        label.profile->stored != ValueType::kString || label.profile->is_number();
    const bool is_float =
        label.task == Task::kRegression || label.profile->stored == ValueType::kFloat;
    // The words of a label are texts or ints.
    const bool has_words = !label.words.empty();
    const std::string_view type =
        !is_number ? "string" : (is_float && !has_words ? "float" : "int");
    const std::string more =
        StrCat(is_float && has_words ? ", truncate: true" : "", Missing(*label.profile));
    text += more.empty() ? std::string(type) : StrCat("{type: ", type, more, "}");
    return StrCat(text, "  # the label\n");
  }

  std::string WriteLabel() const {
    const DraftLabel& label = draft_.label;
    const std::string name = YamlText(label.profile->name);
    std::string text = StrCat("\n# ", DescribeColumn(*label.profile), "\n");
    if (const std::string unread = DescribeUnread(*label.profile); !unread.empty()) {
      text += StrCat("# ", unread, ".\n");
    }
    if (draft_.type->towers) {
      return StrCat(
          text, "# The reward of a pair of query and item. The items of the other rows of ",
          "a batch stand for\n# those that were not chosen; a row of reward 0 is only such ",
          "an item.\nlabel: ", name, "\nhead: {in_batch_softmax: {temperature: 0.1}}\n");
    }
    if (label.task == Task::kBinary && !label.words.empty()) {
      text += StrCat("# The probability that is predicted is that of the second of these words.\n");
    }
    if (!label.note.empty()) text += StrCat("# ", label.note, ".\n");
    if (label.words.empty()) {
      text += StrCat("label: ", name, "\n");
    } else {
      text += StrCat("label:\n  input: ", name, "\n  words: ", YamlList(label.words, 9, 10), "\n");
    }
    if (label.task == Task::kMultiClass) {
      return StrCat(text, "head: {multi_class: ", label.classes, "}\n");
    }
    return StrCat(text, "head: ", TaskName(label.task), "\n");
  }

  // Returns a name that no other column has.
  std::string NewName(const std::string& name) {
    std::string fresh = name;
    while (!taken_.insert(fresh).second) fresh += '_';
    return fresh;
  }

  static std::string Scaling(const data::NumberSums& sums) {
    if (!(sums.stddev() > 0)) return "";
    return StrCat(", mean: ", YamlNumber(sums.mean), ", stddev: ", YamlNumber(sums.stddev()));
  }

  // A column for all parts but the linear one.
  void AddDense(const DraftColumn& column, const std::string& name) {
    parts_.dense.push_back(name);
    const bool is_item =
        std::ranges::find(request_.item, column.profile->name) != request_.item.end();
    (is_item ? parts_.item : parts_.query).push_back(name);
  }

  std::string WriteNumber(const DraftColumn& column) {
    const ColumnProfile& profile = *column.profile;
    const std::string name = YamlText(profile.name);
    const std::string shape = column.shape > 1 ? StrCat(", shape: ", column.shape) : "";
    // A date's mean needs more than six digits, since its deviation is much smaller.
    const std::string scaling =
        column.use == Use::kDate
            ? absl::StrFormat(", mean: %d, stddev: %d", std::llround(profile.numbers.mean),
                              std::max(std::llround(profile.numbers.stddev()), 1LL))
            : Scaling(profile.numbers);
    // Later data may have missing values, too, also as NaN where an export is served.
    const bool has_mean = column.use == Use::kNumber && !profile.is_list();
    const std::string impute =
        has_mean ? StrCat(", impute: ", YamlNumber(profile.numbers.mean)) : "";
    std::string text = StrCat("  ", name, ": {numeric: ", name, shape, impute, scaling);
    text += column.missing_flag
                ? ", missing_flag: true}  # and whether there is a value: most rows have none\n"
                : "}\n";
    parts_.linear.push_back(profile.name);
    AddDense(column, profile.name);
    if (!column.log1p) return text;
    const std::string log_name = NewName(StrCat(profile.name, "_log"));
    text += StrCat("  ", YamlText(log_name), ": {numeric: ", name, ", log1p: true",
                   Scaling(profile.logarithms), "}\n");
    parts_.linear.push_back(log_name);
    AddDense(column, log_name);
    return text;
  }

  std::string WriteWords(const DraftColumn& column) {
    const ColumnProfile& profile = *column.profile;
    const std::string name = YamlText(profile.name);
    std::string text =
        column.use == Use::kVocabulary
            ? StrCat("  ", name, ":\n    vocabulary: ", name,
                     "\n    words: ", YamlList(column.words, 11, 12), "\n")
            : StrCat("  ", name, ": {hash: ", name, ", buckets: ", column.buckets, "}\n");
    parts_.linear.push_back(profile.name);
    const DraftType& type = *draft_.type;
    if (!type.fm && !type.dnn && !type.towers) return text;
    // All columns of a factorization machine have vectors of the same size.
    const bool indicator =
        !type.fm && column.use == Use::kVocabulary && column.words.size() <= kMaxIndicator;
    const std::string dense =
        NewName(StrCat(profile.name, indicator ? "_indicator" : "_embedding"));
    AddDense(column, dense);
    return StrCat(text, "  ", YamlText(dense), ": {", indicator ? "indicator" : "embedding", ": ",
                  name, indicator ? "" : StrCat(", dimension: ", kEmbedding), "}\n");
  }

  std::string WriteColumns() {
    std::string text;
    for (const DraftColumn& column : draft_.columns) {
      if (column.is_words()) {
        text += WriteWords(column);
      } else if (column.use != Use::kLeftOut) {
        text += WriteNumber(column);
      }
    }
    return text;
  }

  const data::Profile& profile_;
  const Draft& draft_;
  const DraftRequest& request_;
  DraftParts parts_;  // filled by WriteColumns
  std::set<std::string> taken_;
};

// Says why each column of a draft that uses none is left out, up to kToldColumns of them.
std::string DescribeUnused(const Draft& draft) {
  std::vector<std::string> told = draft.warnings;
  for (const DraftColumn& column : draft.columns) {
    told.push_back(
        StrCat("column '", CommentText(column.profile->name), "' is left out: ", column.why));
  }
  const size_t more = told.size() - std::min(told.size(), kToldColumns);
  told.resize(told.size() - more);
  std::string text;
  for (const std::string& each : told) text += StrCat("; ", each);
  return more == 0 ? text : StrCat(text, "; and ", more, " more columns");
}

}  // namespace

uint64_t Draft::used() const {
  return static_cast<uint64_t>(std::ranges::count_if(
      columns, [](const DraftColumn& column) { return column.use != Use::kLeftOut; }));
}

std::string DescribeColumn(const ColumnProfile& column) {
  std::string text(data::KindName(column.kind));
  if (column.is_list()) {
    text += column.least_in_row == column.most_in_row
                ? StrCat(", ", column.most_in_row, " values a row")
                : StrCat(", ", column.least_in_row, " to ", column.most_in_row, " values a row");
    if (column.separator != '\0')
      text += StrCat(" separated by ", std::string(1, column.separator));
  }
  if (column.missing > 0) {
    text += StrCat(", ", GroupDigits(column.missing), " missing");
    if (!column.marks.empty()) {
      std::vector<std::string> marks;
      for (const auto& mark : column.marks) marks.push_back(CommentText(mark.first));
      text += StrCat(" (", absl::StrJoin(marks, " "), ")");
    }
  }
  if (column.is_number()) {
    constexpr int kDigits = 6;
    const auto number = [&](double value) { return data::NumberText(column, value, kDigits); };
    text += StrCat(", ", number(column.numbers.min), " to ", number(column.numbers.max), ", mean ",
                   number(column.numbers.mean));
  }
  if (column.kind == Kind::kText || column.distinct == 2) {
    constexpr size_t kShown = 3;
    text += StrCat(", ", column.more_distinct ? "more than " : "", GroupDigits(column.distinct),
                   " distinct: ", TopWords(column, kShown),
                   column.distinct > kShown || column.more_distinct ? ", ..." : "");
  }
  return text;
}

// Whether the data is written as in countries where the comma comes before the fraction.
bool MayHaveDecimalCommas(const data::Profile& profile) {
  return profile.format.delimiter == ';' ||
         std::ranges::any_of(profile.columns, [](const ColumnProfile& column) {
           return column.unread == ColumnProfile::Unread::kCommaNumbers;
         });
}

absl::StatusOr<Draft> DraftModel(const data::Profile& profile, const DraftRequest& request) {
  Draft draft;
  MUSTER_ASSIGN_OR_RETURN(draft.label, MakeDraftLabel(profile, request.label));
  for (const ColumnProfile& column : profile.columns) {
    if (&column != draft.label.profile) draft.columns.push_back(MakeDraftColumn(column));
    if (const std::string unread = DescribeUnread(column); !unread.empty()) {
      draft.warnings.push_back(StrCat("column '", column.name, "': ", unread, " (docs/init.md)"));
    }
    if (const std::string sentinel = DescribeSentinel(column); !sentinel.empty()) {
      draft.warnings.push_back(StrCat("column '", column.name, "': ", sentinel));
    }
    if (!column.grouped_number.empty() && MayHaveDecimalCommas(profile)) {
      draft.warnings.push_back(
          StrCat("column '", column.name, "': if the point in ", column.grouped_number,
                 " stands between thousands, write the numbers without it (docs/init.md)"));
    }
  }
  const std::string spellings = DescribeSpellings(*draft.label.profile);
  if (!spellings.empty()) {
    draft.warnings.push_back(StrCat("label '", draft.label.profile->name, "': ", spellings));
  }
  for (const std::string& name : profile.left_out) {
    draft.warnings.push_back(StrCat("column '", name, "' is left out: it ", WhyLeftOut(profile)));
  }
  if (draft.used() == 0) {
    return absl::InvalidArgumentError(StrCat("no column besides the label '", request.label,
                                             "' can be learned from", DescribeUnused(draft)));
  }
  const bool deep = draft.label.task != Task::kRegression && profile.rows >= kMinRowsOfNetwork;
  const std::string usual = deep ? "wide_deep" : "linear";
  MUSTER_ASSIGN_OR_RETURN(draft.type, FindDraftType(request.model.empty() ? usual : request.model));
  MUSTER_RETURN_IF_ERROR(CheckDraftType(*draft.type, draft.label, draft.columns, request.item));
  draft.batch_size = ChooseBatchSize(profile.rows, draft.label);
  draft.epochs = ChooseEpochs(profile.rows, draft.batch_size, *draft.type, draft.label);
  draft.yaml = DraftWriter(profile, draft, request).Write();
  if (!IsUtf8(draft.yaml)) {
    return absl::InvalidArgumentError(
        "the header, or the words of the label, are not UTF-8; give --encoding-errors latin1 if "
        "they "
        "are Latin-1 (as files of Excel may be), or convert the data: iconv -f CP1252 -t UTF-8");
  }
  return draft;
}

}  // namespace muster::model
