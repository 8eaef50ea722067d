// The rows of one server in a tensor of all rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/base/status.h"
#include "muster/formats/bundle.h"
#include "muster/ps/server/table_files.h"
#include "muster/ps/wire/placement.h"

namespace muster::ps {

// The first of `runs`, in their order, with rows at or after `row`.
std::span<const RowRun>::iterator FindRun(std::span<const RowRun> runs, int64_t row);

// Which rows of a partitioned tensor are to be read for `runs`, which must outlive the result.
formats::BundleReader::WantsRows GetWanted(std::span<const RowRun> runs);

// Loads those of a table's elements [first, first + values.size()) that are in `runs`, of rows of
// `cols`; `slice` says of which variable and slot they are.
absl::Status LoadOwn(std::span<const RowRun> runs, int64_t cols, int64_t first,
                     std::span<const float> values, Slice slice, TableState& state);

// Loads what the tensor has of `runs`. Slices of it without such rows are not read.
absl::Status LoadTensor(const formats::BundleReader& bundle, const std::string& name,
                        std::span<const RowRun> runs, int64_t cols, const Slice& slice,
                        TableState& state);

}  // namespace muster::ps
