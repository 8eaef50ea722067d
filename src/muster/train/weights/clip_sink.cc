#include "muster/train/weights/clip_sink.h"

#include <algorithm>
#include <cmath>

#include "muster/math/vector.h"

namespace muster::train {

void ClipSink::ScaleToNorm(double norm, Kept& kept) const {
  // A NaN norm fails this test, so that the gradient stays NaN.
  if (norm <= spec_.limit) return;
  optim::ScaleEntries(static_cast<float>(spec_.limit / norm), kept.layout, kept.gradient);
}

ClipSink::Kept& ClipSink::Keep(int variable, std::span<const float> gradient) {
  if (count_ == kept_.size()) kept_.emplace_back();
  Kept& kept = kept_[count_++];
  kept.variable = variable;
  kept.has_rows = false;
  kept.layout = {};
  kept.gradient.assign(gradient.begin(), gradient.end());
  return kept;
}

void ClipSink::Give(const Kept& kept) {
  if (kept.has_rows) {
    next_.Rows(kept.variable, kept.rows, kept.gradient);
  } else {
    next_.Dense(kept.variable, kept.gradient);
  }
}

void ClipSink::ClipAlone(Kept& kept) const {
  if (spec_.kind == optim::ClipSpec::Kind::kValue) {
    math::Clamp(static_cast<float>(spec_.limit), kept.gradient.data(), kept.gradient.size());
  } else {
    ScaleToNorm(std::sqrt(optim::SumOfSquaredEntries(kept.layout, kept.gradient)), kept);
  }
}

void ClipSink::Dense(int variable, std::span<const float> gradient) {
  Kept& kept = Keep(variable, gradient);
  if (spec_.kind == optim::ClipSpec::Kind::kGlobalNorm) return;
  ClipAlone(kept);
  Give(kept);
  --count_;
}

void ClipSink::Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) {
  if (spec_.tables_are_cut) return next_.Rows(variable, rows, gradient);
  Kept& kept = Keep(variable, gradient);
  kept.has_rows = true;
  kept.layout.squares = next_.WantsSquares(variable) && !rows.empty();
  if (kept.layout.squares) {
    kept.layout.cols = static_cast<int64_t>(gradient.size() / rows.size() / 2);
  }
  kept.rows.assign(rows.begin(), rows.end());
  if (spec_.kind == optim::ClipSpec::Kind::kGlobalNorm) return;
  ClipAlone(kept);
  Give(kept);
  --count_;
}

void ClipSink::Statistic(int variable, std::span<const float> value) {
  next_.Statistic(variable, value);
}

void ClipSink::Finish() {
  const auto kept = std::span(kept_).first(count_);
  double squares = 0;
  for (const Kept& one : kept) {
    squares += optim::SumOfSquaredEntries(one.layout, one.gradient);
  }
  for (Kept& one : kept) {
    ScaleToNorm(std::sqrt(squares), one);
    Give(one);
  }
  count_ = 0;
}

}  // namespace muster::train
