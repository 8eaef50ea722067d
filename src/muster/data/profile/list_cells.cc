#include "muster/data/profile/list_cells.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/formats/text_number.h"

namespace muster::data {
namespace {

// How often a word of lists occurs at least, on average.
constexpr uint64_t kLeastRepeats = 3;

struct Word {
  uint64_t times = 0;
  size_t place = 0;  // in the first list that has it
};

struct Lists {
  absl::flat_hash_map<std::string_view, Word> words = {};
  uint64_t cells = 0, cells_with_several = 0, values = 0;
  uint64_t least = UINT64_MAX, most = 0;  // words in a cell
  bool are_sound = true;                  // no word is empty or has spaces around it
  bool any_twice = false;                 // within a cell
  bool any_moved = false;                 // a word has different places

  // Whether words are a set, or a sequence, and not parts of a code that have their places.
  bool have_no_places() const { return least < most || (any_moved && !any_twice); }
};

Lists SplitCells(const ColumnProfile& column, char separator) {
  Lists lists;
  for (const auto& [cell, times] : column.words) {
    const std::vector<absl::string_view> parts = absl::StrSplit(cell, separator);
    absl::flat_hash_set<std::string_view> seen;
    for (size_t place = 0; place < parts.size(); ++place) {
      const std::string_view text = ToStd(parts[place]);
      lists.are_sound = lists.are_sound && !text.empty() && text == formats::TrimSpaces(text);
      lists.any_twice = !seen.insert(text).second || lists.any_twice;
      Word& word = lists.words.try_emplace(text, Word{.place = place}).first->second;
      lists.any_moved = lists.any_moved || word.place != place;
      word.times += times;
    }
    if (!lists.are_sound) return lists;
    lists.cells += times;
    lists.cells_with_several += parts.size() > 1 ? times : 0;
    lists.values += times * parts.size();
    lists.least = std::min<uint64_t>(lists.least, parts.size());
    lists.most = std::max<uint64_t>(lists.most, parts.size());
  }
  return lists;
}

bool AreLists(const ColumnProfile& column, const Lists& lists) {
  return lists.are_sound && lists.cells_with_several * 2 > lists.cells &&
         lists.words.size() < column.words.size() &&
         lists.words.size() * kLeastRepeats <= lists.values && lists.have_no_places();
}

}  // namespace

void FindListCells(ColumnProfile* column) {
  const bool is_text = column->kind == ColumnProfile::Kind::kText &&
                       column->stored == formats::ValueType::kString && !column->is_list() &&
                       column->unread == ColumnProfile::Unread::kNothing;
  if (!is_text) return;
  for (const char separator : {'|', ';'}) {
    const Lists lists = SplitCells(*column, separator);
    if (!AreLists(*column, lists)) continue;
    std::vector<ColumnProfile::Counted> words;
    for (const auto& [word, found] : lists.words) words.emplace_back(word, found.times);
    column->SetWords(std::move(words));
    column->separator = separator;
    column->values = lists.values;
    column->least_in_row = column->missing > 0 ? 0 : lists.least;
    column->most_in_row = lists.most;
    return;
  }
}

}  // namespace muster::data
