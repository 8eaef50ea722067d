#include "muster/model/draft/draft_type.h"

#include <algorithm>

#include "muster/base/nearest.h"

namespace muster::model {
namespace {

using Task = DraftLabel::Task;
using Use = DraftColumn::Use;

constexpr DraftType kTypes[] = {
    {.name = "linear", .title = "linear", .linear = true},
    {.name = "dnn", .title = "deep", .dnn = true},
    {.name = "wide_deep", .title = "wide & deep", .linear = true, .dnn = true},
    {.name = "fm", .title = "factorization machine", .linear = true, .fm = true},
    {.name = "deepfm", .title = "DeepFM", .linear = true, .fm = true, .dnn = true},
    {.name = "dcn", .title = "DCN-v2", .dnn = true, .cross = true},
    {.name = "two_tower", .title = "two-tower", .towers = true},
};

absl::Status CheckMachine(const DraftType& type, const DraftLabel& label,
                          const std::vector<DraftColumn>& columns) {
  if (label.task == Task::kMultiClass) {
    return absl::InvalidArgumentError(
        StrCat("--model ", type.name, ": a factorization machine gives one number a row, and the ",
               "label '", label.profile->name, "' has ", label.classes,
               " classes; take --model dcn, wide_deep or linear"));
  }
  const auto used = std::ranges::count_if(
      columns, [](const DraftColumn& column) { return column.use != Use::kLeftOut; });
  if (used >= 2 && std::ranges::any_of(columns, &DraftColumn::is_words)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("--model ", type.name, ": a factorization machine multiplies the vectors of words, ",
             "and needs a column of words and another one; take --model dnn or linear"));
}

absl::Status CheckTowers(const DraftLabel& label, const std::vector<DraftColumn>& columns,
                         const std::vector<std::string>& item) {
  const data::ColumnProfile& reward = *label.profile;
  if (!reward.is_number() || reward.numbers.min < 0) {
    return absl::InvalidArgumentError(
        StrCat("--model two_tower: its label is the reward of a pair, a number of 0 or more such ",
               "as 1 for a click; label '", reward.name, "' has others"));
  }
  if (item.empty()) {
    return absl::InvalidArgumentError(
        "--model two_tower: name the columns that describe the item, by --item A,B,...; the others "
        "describe the query (who looks for it)");
  }
  std::vector<std::string> names;
  size_t of_query = 0;
  for (const DraftColumn& column : columns) {
    names.push_back(column.profile->name);
    const bool is_item = std::ranges::find(item, names.back()) != item.end();
    of_query += column.use != Use::kLeftOut && !is_item ? 1 : 0;
  }
  size_t of_item = 0;
  for (const std::string& name : item) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return absl::InvalidArgumentError(
          StrCat("--item: '", name, "' is no column beside the label", DidYouMean(name, names)));
    }
    of_item += columns[static_cast<size_t>(found - names.begin())].use != Use::kLeftOut ? 1 : 0;
  }
  if (of_item > 0 && of_query > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("--model two_tower: no column is left to describe the ",
                                           of_item == 0 ? "item" : "query"));
}

}  // namespace

std::span<const DraftType> DraftTypes() { return kTypes; }

std::vector<std::string> DraftTypeNames() {
  std::vector<std::string> names;
  for (const DraftType& type : kTypes) names.emplace_back(type.name);
  return names;
}

absl::StatusOr<const DraftType*> FindDraftType(const std::string& name) {
  const auto* const found = std::ranges::find(kTypes, name, &DraftType::name);
  if (found != std::end(kTypes)) return found;
  return absl::InvalidArgumentError(
      StrCat("unknown model '", name, "'", DidYouMean(name, DraftTypeNames())));
}

absl::Status CheckDraftType(const DraftType& type, const DraftLabel& label,
                            const std::vector<DraftColumn>& columns,
                            const std::vector<std::string>& item) {
  if (type.towers) return CheckTowers(label, columns, item);
  if (!item.empty()) {
    return absl::InvalidArgumentError("--item is for --model two_tower");
  }
  return type.fm ? CheckMachine(type, label, columns) : absl::OkStatus();
}

}  // namespace muster::model
