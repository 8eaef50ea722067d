#include "muster/cli/train/not_finite.h"

#include <cmath>
#include <cstdio>

#include "muster/base/number_text.h"

namespace muster::cli {

void NotFinite::Look(std::span<const std::string> keys, const engine::Predictions& predictions) {
  // The first tensor of floats tells: what follows is computed from it.
  for (const engine::PredictionTensor& tensor : predictions.tensors) {
    if (tensor.type != formats::ValueType::kFloat || tensor.width < 1) continue;
    const auto width = static_cast<size_t>(tensor.width);
    for (size_t i = 0; i < tensor.floats.size(); ++i) {
      if (std::isfinite(tensor.floats[i])) continue;
      const size_t row = i / width;
      if (count_++ == 0 && row < keys.size()) first_ = keys[row];
      i = (row + 1) * width - 1;  // to the next row
    }
    return;
  }
}

void NotFinite::Warn() const {
  if (count_ == 0) return;
  std::fprintf(stderr,
               "warning: the predictions of %s row%s are not finite, first those of row %s: "
               "numbers in such rows, or the model's weights, are too large\n",
               GroupDigits(count_).c_str(), count_ == 1 ? "" : "s", first_.c_str());
}

}  // namespace muster::cli
