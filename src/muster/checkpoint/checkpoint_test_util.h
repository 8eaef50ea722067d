// Helpers for the tests of this layer: small tensors whose values tell which save they come from.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/frozen_tensors.h"
#include "muster/checkpoint/saver.h"
#include "muster/io/file_system.h"

namespace muster::checkpoint {

inline constexpr double kNow = 1'700'000'000.5;

// Two tensors whose every element is `value`, so that a mixture of two saves is detected.
struct Weights {
  explicit Weights(float value = 0) : kernel(300, value), bias(7, value) {}
  std::vector<Tensor> tensors() {
    return {{"kernel", formats::DataType::kFloat, {100, 3}, Bytes(kernel), 0},
            {"bias", formats::DataType::kFloat, {7}, Bytes(bias), 1}};
  }
  // Changes the values as training does.
  void Change(FrozenTensors& frozen, float value) {
    frozen.BeforeAll(0);
    std::fill(kernel.begin(), kernel.end(), value);
    frozen.BeforeAll(1);
    std::fill(bias.begin(), bias.end(), value);
  }
  static std::span<char> Bytes(std::vector<float>& values) {
    return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)};
  }
  bool AllAre(float value) const {
    for (const auto* part : {&kernel, &bias}) {
      for (const float x : *part) {
        if (x != value) return false;
      }
    }
    return true;
  }
  std::vector<float> kernel, bias;
};

inline absl::StatusOr<std::string> SaveStep(io::FileSystem& files, int64_t step, float value,
                                            int keep = 5) {
  Weights weights(value);
  const Strings strings = {{"position", StrCat("at ", step)}};
  return Saver(files, "m", {.keep_max = keep}).Save(step, weights.tensors(), strings, kNow);
}

// The step, and the value of all weights, of the newest checkpoint; a mixture is an error.
struct Loaded {
  int64_t step = 0;
  float value = 0;
  std::string note;
};
inline absl::StatusOr<Loaded> LoadLatest(io::FileSystem& files, const std::string& folder = "m") {
  Weights weights;
  MUSTER_ASSIGN_OR_RETURN(const Restored restored, RestoreLatest(files, folder, weights.tensors()));
  const auto position = restored.strings.find("position");
  if (position == restored.strings.end() || position->second != StrCat("at ", restored.step)) {
    return absl::InternalError("position of another step");
  }
  const float value = weights.kernel[0];
  if (!weights.AllAre(value)) return absl::InternalError("a mixture of two saves");
  return Loaded{restored.step, value, restored.note};
}

}  // namespace muster::checkpoint
