// Finds which rows of a table a batch reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/math/row_numbers.h"

namespace muster::engine {

// The distinct ids of one id list over the whole batch. Linear and embedding tables that read the
// same list share it.
struct DistinctRows {
  std::vector<int32_t> rows;       // in order of first appearance
  std::vector<int32_t> positions;  // by entry of the list: its index in `rows`; -1: no id
};

// Finds the distinct rows. Keeps memory between calls; one owner thread.
class DistinctRowsFinder {
 public:
  // `ids` are -1 or in [0, bound).
  void Find(std::span<const int32_t> ids, int64_t bound, DistinctRows* out);

 private:
  void FindByNumber(std::span<const int32_t> ids, int64_t bound, DistinctRows* out);
  void FindByHash(std::span<const int32_t> ids, DistinctRows* out);

  math::RowNumbers numbers_;   // for small tables
  std::vector<int32_t> hash_;  // for large tables: an open hash table of indices in `rows`, + 1
};

// Returns the index of the first entry that is neither -1 nor in [0, bound), for which the caller
// returns INVALID_ARGUMENT; -1 if there is none.
int64_t FindBadId(std::span<const int32_t> ids, int64_t bound);

}  // namespace muster::engine
