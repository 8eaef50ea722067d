// KerasRule: an optimizer by Keras 3's rule. Gradients of rows come with squares (row_layout.h).
//
// The template argument `Rule` provides:
//   Step                   a step's numbers, made by At(step)
//   kMovesAllRows          whether untouched rows change too, as with a gradient of 0
//   Rests(step)            if kMovesAllRows: whether they do not change in this step
//   Slots()
//   Update                 updates n elements from the gradient g and its squares g^2
//   UpdateRows             updates rows of a table; g is rows x 2 cols
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

#include "muster/optim/optimizer.h"

namespace muster::optim {

// Calls update(weights, slots, zeros, n) for the untouched rows in [first, last), part by part;
// `zeros` is a gradient of n zeros.
template <typename Update>
void WalkWithoutGradient(std::span<float> table, int64_t cols, std::span<float* const> slots,
                         int64_t first, int64_t last, const TouchedRows& touched,
                         const Update& update) {
  static constexpr int64_t kPart = 1024;  // stays in the L1 cache
  static constexpr float kZeros[kPart] = {};
  absl::InlinedVector<float*, 4> places(slots.size());
  touched.ForEachUntouchedRun(first, last, [&](int64_t begin, int64_t count) {
    const int64_t end = (begin + count) * cols;
    for (int64_t at = begin * cols; at < end; at += kPart) {
      for (size_t k = 0; k < slots.size(); ++k) places[k] = slots[k] + at;
      update(table.data() + at, std::span<float* const>(places), kZeros,
             static_cast<size_t>(std::min(kPart, end - at)));
    }
  });
}

template <class Rule>
class KerasRule final : public Optimizer {
 public:
  explicit KerasRule(Rule rule) : rule_(std::move(rule)), slots_(rule_.Slots()) {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool wants_squares() const override { return true; }
  bool moves_untouched_rows() const override { return Rule::kMovesAllRows; }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    rule_.Update(weights.data(), slots, gradient.data(), weights.size(), rule_.At(step));
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    rule_.UpdateRows(table.data(), slots, static_cast<size_t>(cols), rows, gradient.data(),
                     rule_.At(step));
  }
  void Walk(std::span<float> table, int64_t cols, std::span<float* const> slots, int64_t first,
            int64_t last, const TouchedRows& touched, int64_t step) const override {
    if constexpr (Rule::kMovesAllRows) {
      if (rule_.Rests(step)) return;
      WalkWithoutGradient(
          table, cols, slots, first, last, touched,
          [this, now = rule_.At(step)](float* w, std::span<float* const> at, const float* zeros,
                                       size_t n) { rule_.Update(w, at, zeros, n, now); });
    }
  }

 private:
  const Rule rule_;
  const std::vector<SlotSpec> slots_;
};

template <class Rule>
std::unique_ptr<Optimizer> NewKerasRule(Rule rule) {
  return std::make_unique<KerasRule<Rule>>(std::move(rule));
}

}  // namespace muster::optim
