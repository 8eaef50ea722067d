// Predictions: named results for the rows of a batch; PredictionFiller writes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/formats/schema.h"

namespace muster::engine {

struct PredictionTensor {
  std::string name;
  formats::ValueType type = formats::ValueType::kFloat;
  int width = 1;                  // 0, without rows: any width
  bool same_in_all_rows = false;  // then it holds a single row
  // Only the vector for `type` is used.
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;  // into the Predictor, or into the Forward

  // The index of a row's first value.
  size_t begin(int row) const {
    return same_in_all_rows ? 0 : static_cast<size_t>(row) * static_cast<size_t>(width);
  }
};

struct Predictions {
  int rows = 0;
  std::vector<PredictionTensor> tensors;

  // Null when the head has none of this name.
  const PredictionTensor* Find(std::string_view name) const;
};

// Hands out the tensors of *out one after another, so that their memory is reused; tensors left
// over from another head are removed. The references stay valid while the filler lives.
class PredictionFiller {
 public:
  // out->rows must already be set.
  explicit PredictionFiller(Predictions* out);
  ~PredictionFiller();
  PredictionFiller(const PredictionFiller&) = delete;
  PredictionFiller& operator=(const PredictionFiller&) = delete;

  // Returns rows x width values to be written.
  std::vector<float>& Floats(std::string_view name, int width);
  std::vector<int64_t>& Ints(std::string_view name, int width, bool same_in_all_rows = false);
  std::vector<std::string_view>& Strings(std::string_view name, int width,
                                         bool same_in_all_rows = false);

 private:
  PredictionTensor& Next(std::string_view name, formats::ValueType type, int width, bool same);

  Predictions& out_;
  size_t next_ = 0;
};

// Fills "classes" with the name of each row's class, "all_class_ids" and "all_classes" with those
// of all classes.
void FillClasses(std::span<const int64_t> ids, const std::vector<std::string>& class_names,
                 PredictionFiller* filler);

// The same function that the heads use.
float Sigmoid(float logit);
// probabilities[i] = exp(logits[i]) / sum over exp(logits), without overflow.
void Softmax(std::span<const float> logits, std::span<float> probabilities);
// The index of the first largest logit.
int LargestLogit(std::span<const float> logits);

}  // namespace muster::engine
