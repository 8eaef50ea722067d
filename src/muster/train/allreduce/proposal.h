// Proposal: the numbers that the replicas of a step exchange (replicated_step.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "muster/train/loop/strategy.h"

namespace muster::train {

struct Proposal {
  int32_t rows = 0;  // of the replica's batch
  Strategy::Stop stop = Strategy::Stop::kNo;
  float seconds = 0;    // of work since the previous step
  int32_t dropped = 0;  // records before the batch (InputBatch::dropped)
  int32_t dropped_at_end = 0;
  int32_t bad_records = 0;  // left out so far
  int32_t next_rows = 0;    // of the replica's next batch, or a guess
};

// The largest count that each of `replicas` may send, so that the sum cannot overflow.
int32_t GetMostCount(size_t replicas);

// The first of all replicas' proposals with a number that no replica can have sent: a sum of the
// others cannot overflow, whatever the peers are.
std::optional<size_t> FindImpossible(std::span<const Proposal> proposals);

// For an error that names the replica: "proposes a step of ...".
std::string Describe(const Proposal& proposal, size_t replicas);

// Of proposals without an impossible number: the sums of the counts, and the strongest stop.
Proposal SumProposals(std::span<const Proposal> proposals);

// A note (ReduceSink::Reduce) with a proposal and a position.
std::string MakeNote(const Proposal& proposal, std::string_view position);
// Leaves the position in *note. None if the note is too short.
std::optional<Proposal> TakeProposal(std::string* note);

}  // namespace muster::train
