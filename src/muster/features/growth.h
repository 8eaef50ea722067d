// GrowthSpec: how a table that grows gets its rows: one row per key, as keys arrive.
#pragma once

#include <cstdint>

namespace muster::features {

struct GrowthSpec {
  int64_t admit_after = 1;   // a key gets a row after this many steps have named it; 1: at once
  int64_t expire_after = 0;  // steps without the key after which its row is removed; 0: never
  int64_t capacity = 0;      // the most rows; 0: no limit
  friend bool operator==(const GrowthSpec&, const GrowthSpec&) = default;
};

}  // namespace muster::features
