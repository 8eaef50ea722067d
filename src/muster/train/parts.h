// Parts: how the data of a training is dealt whose replicas may become fewer or more. It is cut
// into a fixed number of parts, each read by one replica with a position of its own; another number
// of replicas deals the parts otherwise, and each is read on where its last batch that counted
// ended.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/reader.h"

namespace muster::train {

// Into how many parts for `fewest` to `most` replicas: so many that each number of them has equal
// shares, or, where that were too many, shares that differ little.
int PartsFor(int fewest, int most);

// Those of one replica. Depends on nothing else, so that the same replicas always have the same.
std::vector<int> PartsOf(int parts, int rank, int size);

// What a replica tells the others of its batch: from which part it is, and where that stands behind
// it.
std::string PartNote(int part, const data::Position& position);
// Puts what each replica told ("": it had no batch) into *positions, by part. DATA_LOSS for what is
// no note; *positions is then as it was.
absl::Status TakePartNotes(const std::vector<std::string>& notes, int parts,
                           std::vector<std::string>* positions);

}  // namespace muster::train
