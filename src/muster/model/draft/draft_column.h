// Decides what `muster init` makes of each column of the data: the input and the feature columns
// over it, or why it is left out.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/profile/profile.h"

namespace muster::model {

struct DraftColumn {
  enum class Use { kLeftOut, kNumber, kDate, kVocabulary, kHash };
  const data::ColumnProfile* profile = nullptr;
  Use use = Use::kLeftOut;
  std::string why = {};                 // why the column is left out
  bool is_id = false;                   // kLeftOut: its values only name the rows
  bool log1p = false;                   // kNumber: its logarithm is a column too
  bool missing_flag = false;            // kNumber, kDate: whether a row has a value is a number too
  int shape = 1;                        // kNumber: values per row
  std::vector<std::string> words = {};  // kVocabulary, most frequent first
  int64_t buckets = 0;                  // kHash

  bool is_words() const { return use == Use::kVocabulary || use == Use::kHash; }
};

DraftColumn MakeDraftColumn(const data::ColumnProfile& profile);

// What a column of text holds that is read neither as numbers nor as dates, or is not UTF-8, and
// what to write instead; "" for other columns.
std::string DescribeUnread(const data::ColumnProfile& column);

// Why the columns of Profile::left_out are: "occurs twice in the header; ...".
std::string WhyLeftOut(const data::Profile& profile);

struct DraftLabel {
  enum class Task { kBinary, kMultiClass, kRegression };
  const data::ColumnProfile* profile = nullptr;
  Task task = Task::kBinary;
  // The classes in the order of their numbers; empty if the values are these numbers themselves, or
  // amounts to be predicted.
  std::vector<std::string> words = {};
  uint64_t classes = 0;
  // What was decided about numbers that could as well be the other, classes or amounts, and what to
  // write instead; else "".
  std::string note = {};
};

// Returns "binary", "multi_class" or "regression".
std::string_view TaskName(DraftLabel::Task task);

// NOT_FOUND, which suggests the nearest name, if there is no such column. INVALID_ARGUMENT for a
// column that cannot be learned: it has one value, is a list, or is text with too many words.
absl::StatusOr<DraftLabel> MakeDraftLabel(const data::Profile& profile, const std::string& label);

}  // namespace muster::model
