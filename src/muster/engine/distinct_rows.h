// Which rows of a table a batch touches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::engine {

// The distinct ids of one id list over the whole batch. Linear and embedding tables that read the
// same list share it.
struct DistinctRows {
  std::vector<int32_t> rows;       // in order of first appearance
  std::vector<int32_t> positions;  // for each entry its place in `rows`; -1 for no id
};

// Finds them. Keeps memory between calls; one owner thread.
class DistinctRowsFinder {
 public:
  // `ids` are -1 or in [0, bound).
  void Find(std::span<const int32_t> ids, int64_t bound, DistinctRows* out);

 private:
  void FindByPlace(std::span<const int32_t> ids, DistinctRows* out);
  void FindByHash(std::span<const int32_t> ids, DistinctRows* out);

  // Small tables: place_[id] is where the id stands in `rows`, if it does (Briggs, Torczon, "An
  // efficient representation for sparse sets", 1993: never cleared). Large tables: an open hash
  // table of places + 1.
  std::vector<uint32_t> place_;
  std::vector<int32_t> hash_;
};

// INVALID_ARGUMENT material: the first entry that is neither -1 nor in [0, bound), or -1.
int64_t FindBadId(std::span<const int32_t> ids, int64_t bound);

}  // namespace muster::engine
