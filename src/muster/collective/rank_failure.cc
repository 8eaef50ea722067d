#include "muster/collective/rank_failure.h"

#include <charconv>
#include <system_error>

#include "muster/base/status.h"

namespace muster::collective {
namespace {

constexpr std::string_view kRank = "rank ";
constexpr std::string_view kSeenBy = " (seen by ";
constexpr std::string_view kAfterName = ": ";

std::optional<int> ParseRank(std::string_view text) {
  if (!text.starts_with(kRank)) return std::nullopt;
  text.remove_prefix(kRank.size());
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return error == std::errc() && rank >= 0 ? std::optional(rank) : std::nullopt;
}

}  // namespace

std::string RankName(int rank, std::string_view name) {
  return name.empty() ? StrCat(kRank, rank) : StrCat(kRank, rank, " (", name, ")");
}

std::string FormatRankFailure(std::string_view failed, std::string_view cause,
                              std::string_view seen_by) {
  std::string text = StrCat(failed, kAfterName, cause);
  if (!seen_by.empty()) text += StrCat(kSeenBy, seen_by, ")");
  return text;
}

std::optional<RankFailure> ParseRankFailure(std::string_view text) {
  const auto rank = ParseRank(text);
  const size_t cause = text.find(kAfterName);
  if (!rank || cause == text.npos) return std::nullopt;
  RankFailure failure = {.rank = *rank};
  // The last such mark counts: a cause may quote another failure.
  const size_t seen_by = text.rfind(kSeenBy);
  if (seen_by != text.npos && seen_by >= cause) {
    failure.seen_by = ParseRank(text.substr(seen_by + kSeenBy.size()));
  }
  const size_t begin = cause + kAfterName.size();
  failure.cause = text.substr(begin, failure.seen_by ? seen_by - begin : text.npos);
  return failure;
}

}  // namespace muster::collective
