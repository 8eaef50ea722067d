#include "muster/train/clip_sink.h"

#include <algorithm>
#include <cmath>

#include "muster/math/vector.h"

namespace muster::train {
namespace {

void ScaleToNorm(double norm, double limit, std::span<float> gradient) {
  // Not a number stays what it is.
  if (norm <= limit) return;
  math::Scale(static_cast<float>(limit / norm), gradient.data(), gradient.size());
}

}  // namespace

ClipSink::Kept& ClipSink::Keep(int variable, std::span<const float> gradient) {
  if (count_ == kept_.size()) kept_.emplace_back();
  Kept& kept = kept_[count_++];
  kept.variable = variable;
  kept.has_rows = false;
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

void ClipSink::ClipAlone(std::span<float> gradient) const {
  if (spec_.kind == optim::ClipSpec::Kind::kValue) {
    math::Clamp(static_cast<float>(spec_.limit), gradient.data(), gradient.size());
  } else {
    ScaleToNorm(std::sqrt(math::SumOfSquares(gradient.data(), gradient.size())), spec_.limit,
                gradient);
  }
}

void ClipSink::Dense(int variable, std::span<const float> gradient) {
  Kept& kept = Keep(variable, gradient);
  if (spec_.kind == optim::ClipSpec::Kind::kGlobalNorm) return;
  ClipAlone(kept.gradient);
  Give(kept);
  --count_;
}

void ClipSink::Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) {
  Kept& kept = Keep(variable, gradient);
  kept.has_rows = true;
  kept.rows.assign(rows.begin(), rows.end());
  if (spec_.kind == optim::ClipSpec::Kind::kGlobalNorm) return;
  ClipAlone(kept.gradient);
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
    squares += math::SumOfSquares(one.gradient.data(), one.gradient.size());
  }
  for (Kept& one : kept) {
    ScaleToNorm(std::sqrt(squares), spec_.limit, one.gradient);
    Give(one);
  }
  count_ = 0;
}

}  // namespace muster::train
