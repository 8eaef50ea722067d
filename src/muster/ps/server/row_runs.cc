#include "muster/ps/server/row_runs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace muster::ps {

std::span<const RowRun>::iterator FindRun(std::span<const RowRun> runs, int64_t row) {
  return std::ranges::lower_bound(runs, row, std::less_equal(),
                                  [](const RowRun& each) { return each.first + each.count; });
}

formats::BundleReader::WantsRows GetWanted(std::span<const RowRun> runs) {
  return [runs](int64_t first, int64_t count) {
    const auto run = FindRun(runs, first);
    return run != runs.end() && run->first < first + count;
  };
}

absl::Status LoadOwn(std::span<const RowRun> runs, int64_t cols, int64_t first,
                     std::span<const float> values, Slice slice, TableState& state) {
  const int64_t end = first + std::ssize(values);
  for (auto run = FindRun(runs, first / cols); run != runs.end() && run->first * cols < end;
       ++run) {
    const int64_t begin = std::max(first, run->first * cols);
    slice.count = std::min(end, (run->first + run->count) * cols) - begin;
    slice.first = run->local * cols + begin - run->first * cols;
    slice.values =
        values.subspan(static_cast<size_t>(begin - first), static_cast<size_t>(slice.count));
    MUSTER_RETURN_IF_ERROR(state.Load(slice));
  }
  return absl::OkStatus();
}

absl::Status LoadTensor(const formats::BundleReader& bundle, const std::string& name,
                        std::span<const RowRun> runs, int64_t cols, const Slice& slice,
                        TableState& state) {
  std::vector<float> values;
  return bundle.ReadPieces(
      name, GetWanted(runs), [&](uint64_t offset, std::span<const char> piece) {
        values.resize(piece.size() / sizeof(float));
        std::memcpy(values.data(), piece.data(), values.size() * sizeof(float));
        return LoadOwn(runs, cols, static_cast<int64_t>(offset / sizeof(float)), values, slice,
                       state);
      });
}

}  // namespace muster::ps
