// Parts: how data is divided in a training whose number of replicas may change. The data is cut
// into a fixed number of parts. Each part has its own position and is read by one replica. When the
// number of replicas changes, the parts are divided anew, and each part continues after its last
// batch that counted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/reader.h"

namespace muster::train {

// The number of parts for `fewest` to `most` replicas: one that gives equal shares for each number
// of replicas or, if that would be too many parts, shares that differ little.
int PartsFor(int fewest, int most);

// The parts of one replica. They depend on the arguments alone, so that the same rank among the
// same number of replicas always has the same parts.
std::vector<int> GetParts(int parts, int rank, int size);

// A note in which a replica reports to the others which part its batch comes from, and the position
// of the part after this batch.
std::string PartNote(int part, const data::Position& position);
// Stores the notes of the replicas ("": no batch) in *positions, by part. Returns the first replica
// whose text is not such a note; *positions is then unchanged.
std::optional<size_t> MergePartNotes(const std::vector<std::string>& notes, int parts,
                                     std::vector<std::string>* positions);

}  // namespace muster::train
