#include "muster/train/allreduce/proposal.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "muster/base/strings.h"

namespace muster::train {

using Stop = Strategy::Stop;

int32_t GetMostCount(size_t replicas) {
  return std::numeric_limits<int32_t>::max() / static_cast<int32_t>(replicas);
}

std::optional<size_t> FindImpossible(std::span<const Proposal> proposals) {
  const auto is_count = [most = GetMostCount(proposals.size())](int32_t count) {
    return count >= 0 && count <= most;
  };
  for (size_t i = 0; i < proposals.size(); ++i) {
    const Proposal& each = proposals[i];
    const bool knows_stop = each.stop >= Stop::kNo && each.stop <= Stop::kInterrupted;
    if (!is_count(each.rows) || !is_count(each.dropped) || !is_count(each.dropped_at_end) ||
        !is_count(each.bad_records) || !is_count(each.next_rows) || !knows_stop ||
        !std::isfinite(each.seconds) || each.seconds < 0) {
      return i;
    }
  }
  return std::nullopt;
}

std::string Describe(const Proposal& proposal, size_t replicas) {
  return StrCat("proposes a step of ", proposal.rows, " rows, with ", proposal.dropped,
                " records dropped before it, ", proposal.dropped_at_end, " at the end, ",
                proposal.bad_records, " bad ones, ", proposal.next_rows, " rows after it, ",
                proposal.seconds, " s of work and stop ", static_cast<int32_t>(proposal.stop),
                "; counts must be 0 to ", GetMostCount(replicas));
}

Proposal SumProposals(std::span<const Proposal> proposals) {
  Proposal all;
  for (const Proposal& each : proposals) {
    all.rows += each.rows;
    all.stop = std::max(all.stop, each.stop);
    all.dropped += each.dropped;
    all.dropped_at_end += each.dropped_at_end;
    all.bad_records += each.bad_records;
    all.next_rows += each.next_rows;
  }
  return all;
}

std::string MakeNote(const Proposal& proposal, std::string_view position) {
  std::string note(sizeof proposal, '\0');
  std::memcpy(note.data(), &proposal, sizeof proposal);
  return note.append(position);
}

std::optional<Proposal> TakeProposal(std::string* note) {
  Proposal proposal;
  if (note->size() < sizeof proposal) return std::nullopt;
  std::memcpy(&proposal, note->data(), sizeof proposal);
  note->erase(0, sizeof proposal);
  return proposal;
}

}  // namespace muster::train
