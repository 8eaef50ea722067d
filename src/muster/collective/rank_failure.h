// RankFailure: which rank of a group failed and why, in the form in which ranks report it to each
// other.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::collective {

struct RankFailure {
  int rank = 0;                     // the rank that failed
  std::string cause = {};           // without the names of ranks
  std::optional<int> seen_by = {};  // empty if the rank that failed reported it itself
};

// "rank 2 (worker-1)", or "rank 2" without a name.
std::string RankName(int rank, std::string_view name);

// "rank 2 (worker-1): cause (seen by rank 1 (worker-0))". `failed` and `seen_by` are RankNames;
// an empty `seen_by` is left out.
std::string FormatRankFailure(std::string_view failed, std::string_view cause,
                              std::string_view seen_by);

// The inverse of FormatRankFailure. Returns nothing if `text` has another form; it may come from
// the network.
std::optional<RankFailure> ParseRankFailure(std::string_view text);

}  // namespace muster::collective
