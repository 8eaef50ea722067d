// A share of the records is held back from a training, for its evaluations. The name of a record's
// file, without its folder, and the record's number in it decide whether it is; or its partition
// and offset. So both parts are the same whatever the shards, the order and the seed are.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"

namespace muster::data {

// Whether record `number` of the file or partition `name` is among the `share` of the records that
// is held back.
bool IsHeldBack(double share, std::string_view name, uint64_t number);

// Leaves in each source the records of the part that spec.held_back names, with the numbers that
// they had. INVALID_ARGUMENT if none of the sources has any, unless spec.may_be_empty.
absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> TakePart(
    std::vector<std::unique_ptr<RecordSource>> sources, const SourceSpec& spec);

}  // namespace muster::data
