// KeySums: adds up several replicas' gradients of one table that grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace muster::ps {

// Keys are in order of first appearance, and values are added in the order of replicas. One owner
// thread.
class KeySums {
 public:
  struct List {
    std::span<const int64_t> keys = {};
    std::span<const float> values = {};  // keys.size() x cols
  };
  explicit KeySums(int64_t cols) : cols_(static_cast<size_t>(cols)) {}
  // The sum of the lists; valid until the next call.
  List Sum(std::span<const List> lists);

 private:
  const size_t cols_;
  absl::flat_hash_map<int64_t, size_t> places_;
  std::vector<int64_t> keys_;
  std::vector<float> values_;
};

}  // namespace muster::ps
