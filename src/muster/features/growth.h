// GrowthSpec: how a table without a size comes to its rows: a row a key, as keys come.
#pragma once

#include <cstdint>

namespace muster::features {

struct GrowthSpec {
  int64_t admit_after = 1;   // a key has a row once so many steps have named it; 1: at once
  int64_t expire_after = 0;  // steps without the key after which its row goes; 0: never
  int64_t capacity = 0;      // rows at most; 0: as many as come
  friend bool operator==(const GrowthSpec&, const GrowthSpec&) = default;
};

}  // namespace muster::features
