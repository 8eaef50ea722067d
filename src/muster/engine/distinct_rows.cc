#include "muster/engine/distinct_rows.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace muster::engine {
namespace {

// A table of up to this many rows is numbered by an array with 4 bytes a row.
constexpr int64_t kMostNumbers = int64_t{1} << 22;

}  // namespace

void DistinctRowsFinder::Find(std::span<const int32_t> ids, int64_t bound, DistinctRows* out) {
  out->positions.resize(ids.size());
  // One entry more than needed: FindByNumber writes an id before it knows whether the id is new.
  out->rows.resize(ids.size() + 1);
  if (bound <= kMostNumbers) {
    FindByNumber(ids, bound, out);
  } else {
    FindByHash(ids, out);
  }
}

void DistinctRowsFinder::FindByNumber(std::span<const int32_t> ids, int64_t bound,
                                      DistinctRows* out) {
  int32_t* const rows = out->rows.data();
  int32_t* const positions = out->positions.data();
  math::RowNumbers::Pass pass = numbers_.Begin(bound, ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids[i];
    if (id < 0) {
      positions[i] = -1;
      continue;
    }
    rows[pass.count()] = id;  // overwritten by the next id if this one is not new
    positions[i] = static_cast<int32_t>(pass.GetNumber(id));
  }
  out->rows.resize(pass.count());
  numbers_.End(pass);
}

void DistinctRowsFinder::FindByHash(std::span<const int32_t> ids, DistinctRows* out) {
  const size_t slots = std::bit_ceil(2 * ids.size() + 1);
  if (hash_.size() < slots) hash_.resize(slots);
  std::fill_n(hash_.begin(), slots, 0);
  int32_t count = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) {
      out->positions[i] = -1;
      continue;
    }
    size_t slot = (static_cast<uint32_t>(ids[i]) * uint64_t{0x9e3779b97f4a7c15} >> 32) % slots;
    while (hash_[slot] != 0 && out->rows[static_cast<size_t>(hash_[slot] - 1)] != ids[i]) {
      slot = (slot + 1) % slots;
    }
    if (hash_[slot] == 0) {
      out->rows[static_cast<size_t>(count)] = ids[i];
      hash_[slot] = ++count;
    }
    out->positions[i] = hash_[slot] - 1;
  }
  out->rows.resize(static_cast<size_t>(count));
}

int64_t FindBadId(std::span<const int32_t> ids, int64_t bound) {
  // The highest bit is set where an id is below -1 or above `last`: the compiler
  // makes vectors of sums and differences on any processor, but not of a minimum or a maximum.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto last = static_cast<uint32_t>(std::min(bound, kMost) - 1);
  uint32_t bits = 0;
  for (const int32_t id : ids) {
    bits |= (static_cast<uint32_t>(id) + 1) | (last - static_cast<uint32_t>(id));
  }
  if (bits >> 31 == 0) return -1;
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [bound](int32_t id) { return id < -1 || id >= bound; });
  return bad == ids.end() ? -1 : bad - ids.begin();
}

}  // namespace muster::engine
