// Which rows of a table a batch touches.
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
  std::vector<int32_t> positions;  // for each entry its place in `rows`; -1 for no id
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
  std::vector<int32_t> hash_;  // for large tables: an open hash table of places + 1
};

// Returns the first entry that is neither -1 nor in [0, bound), which makes an INVALID_ARGUMENT
// error; -1 if there is none.
int64_t FindBadId(std::span<const int32_t> ids, int64_t bound);

}  // namespace muster::engine
