#include "muster/ps/server/key_sums.h"

#include "muster/math/vector.h"

namespace muster::ps {

KeySums::List KeySums::Sum(std::span<const List> lists) {
  places_.clear();
  keys_.clear();
  values_.clear();
  for (const List& list : lists) {
    const float* values = list.values.data();
    for (const int64_t key : list.keys) {
      const auto [found, is_new] = places_.try_emplace(key, keys_.size());
      if (is_new) {
        keys_.push_back(key);
        values_.insert(values_.end(), values, values + cols_);
      } else {
        math::AddTo(values, values_.data() + found->second * cols_, cols_);
      }
      values += cols_;
    }
  }
  return {keys_, values_};
}

}  // namespace muster::ps
