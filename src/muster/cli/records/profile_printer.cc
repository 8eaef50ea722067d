#include "muster/cli/records/profile_printer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"

#include "muster/base/number_text.h"
#include "muster/base/terminal.h"
#include "muster/base/utf8.h"

namespace muster::cli {
namespace {

using data::ColumnProfile;
using nlohmann::ordered_json;
using Kind = ColumnProfile::Kind;

std::string Day(double seconds) {
  const auto days = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_seconds(std::chrono::seconds(static_cast<int64_t>(seconds))));
  const std::chrono::year_month_day date(days);
  return absl::StrFormat("%04d-%02u-%02u", static_cast<int>(date.year()),
                         static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string Time(double seconds) {
  const std::chrono::hh_mm_ss time(std::chrono::seconds(static_cast<int64_t>(seconds)));
  return absl::StrFormat("%02d:%02d:%02d", time.hours().count(), time.minutes().count(),
                         time.seconds().count());
}

std::string Range(const ColumnProfile& column) {
  if (column.numbers.count == 0) return "";
  if (column.is_seconds()) {
    const auto text = column.kind == Kind::kTime ? Time : Day;
    return StrCat(text(column.numbers.min), " to ", text(column.numbers.max));
  }
  constexpr int kDigits = 5;
  const auto text = [&](double value) { return data::NumberText(column, value, kDigits); };
  return absl::StrFormat("%s to %s, mean %s +- %.4g", text(column.numbers.min),
                         text(column.numbers.max), text(column.numbers.mean),
                         column.numbers.stddev());
}

std::string Missing(const ColumnProfile& column) {
  if (column.missing == 0) return "0";
  std::string text =
      absl::StrFormat("%s (%.1f %%)", GroupDigits(column.missing),
                      100 * static_cast<double>(column.missing) / static_cast<double>(column.rows));
  for (const auto& mark : column.marks) text += StrCat(" ", mark.first);
  return text;
}

std::string Shown(const std::string& value) {
  constexpr size_t kShownBytes = 24;
  std::string text = EscapeControls(ReplaceNonUtf8(value));
  if (text.size() <= kShownBytes) return text;
  text.resize(kShownBytes);
  text.resize(Utf8PrefixSize(text));
  return StrCat(text, "...");
}

// If every value occurs once, none is worth showing.
std::string Commonest(const ColumnProfile& column, size_t top) {
  if (column.never_twice) return "all different";
  std::string text;
  for (size_t i = 0; i < std::min(top, column.words.size()); ++i) {
    text += StrCat(i == 0 ? "" : ", ", Shown(column.words[i].first), " (",
                   GroupDigits(column.words[i].second), ")");
  }
  return text;
}

}  // namespace

size_t NameColumns(const std::string& name) { return CountColumns(EscapeControls(name)); }

std::string PadName(const std::string& name, size_t columns) {
  return PadColumns(EscapeControls(name), columns);
}

ordered_json ProfileColumnJson(const ColumnProfile& column, size_t top) {
  ordered_json object = {{"name", column.name},
                         {"type", data::KindName(column.kind)},
                         {"missing", column.missing},
                         {"distinct", column.distinct},
                         {"more_distinct", column.more_distinct}};
  if (column.numbers.count > 0) {
    object["min"] = column.numbers.min;
    object["max"] = column.numbers.max;
    object["mean"] = column.numbers.mean;
    object["stddev"] = column.numbers.stddev();
  }
  object["missing_marks"] = ordered_json::array();
  for (const auto& mark : column.marks) object["missing_marks"].push_back(mark.first);
  object["top"] = ordered_json::array();
  for (size_t i = 0; i < std::min(top, column.words.size()); ++i) {
    object["top"].push_back({column.words[i].first, column.words[i].second});
  }
  return object;
}

void PrintProfileJson(const data::Profile& profile, size_t top) {
  ordered_json object = {{"rows", profile.rows},
                         {"bad_rows", profile.bad_rows},
                         {"format", profile.format_name()},
                         {"columns", ordered_json::object()}};
  for (const ColumnProfile& column : profile.columns) {
    ordered_json entry = ProfileColumnJson(column, top);
    entry.erase("name");
    object["columns"][column.name] = std::move(entry);
  }
  std::printf("%s\n", object.dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

void PrintProfileTable(const data::Profile& profile, size_t top) {
  size_t name = 6, missing = 7, range = 14;
  for (const ColumnProfile& column : profile.columns) {
    name = std::max(name, NameColumns(column.name));
    missing = std::max(missing, NameColumns(Missing(column)));
    range = std::max(range, Range(column).size());
  }
  const auto line = [&](const std::string& a, std::string_view b, const std::string& c,
                        const std::string& d, const std::string& e, const std::string& f) {
    std::string text = absl::StrFormat("%s  %-7s  %s  %9s  %-*s  %s", PadName(a, name), ToAbsl(b),
                                       PadName(c, missing), d, static_cast<int>(range), e, f);
    text.resize(text.find_last_not_of(' ') + 1);
    std::printf("%s\n", text.c_str());
  };
  std::printf("%s rows, %zu columns", GroupDigits(profile.rows).c_str(), profile.columns.size());
  if (profile.bad_rows > 0)
    std::printf(", %s rows left out", GroupDigits(profile.bad_rows).c_str());
  std::printf("\n");
  line("column", "type", "missing", "distinct", "range and mean", "commonest");
  for (const ColumnProfile& column : profile.columns) {
    line(column.name, data::KindName(column.kind), Missing(column),
         StrCat(column.more_distinct ? ">" : "", GroupDigits(column.distinct)), Range(column),
         Commonest(column, top));
  }
}

}  // namespace muster::cli
