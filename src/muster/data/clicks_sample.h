// Synthetic click logs with a known truth: 13 numbers, 26 categories, and a label drawn from a
// logistic model of the row as it is written, so that the best possible AUC and log loss are known.
// docs/data.md describes the model.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace muster::data {

constexpr int kClickNumbers = 13;
constexpr int kClickCategories = 26;

struct ClickRow {
  std::array<double, kClickNumbers> numbers;  // NaN: missing; else at least 0.01
  // the value's rank by frequency, from 0; -1: missing
  std::array<int32_t, kClickCategories> categories;
  double probability = 0;  // that the label is 1, given the other columns
  bool label = false;
};

// Makes the rows of one seed. The model (weights, frequencies) is the same for every seed: files of
// two seeds serve as training and test data. Thread-safe.
class ClickSampler {
 public:
  explicit ClickSampler(uint64_t seed);

  // The n-th row: a pure function of (seed, n).
  ClickRow Row(uint64_t n) const;

  // Returns "label,I1,...,I13,C1,...,C26\n".
  static std::string Header();
  static void AppendCsv(const ClickRow& row, std::string* text);
  // Returns the number of values of category column `column` (from 0): 2 ... 100,000 in equal
  // ratios.
  static int Cardinality(int column);

 private:
  // Draws a rank with one 64-bit number (Walker's alias method, 1977).
  struct Zipf {
    explicit Zipf(int cardinality);
    int32_t Draw(uint64_t random) const;
    double frequency_of_first = 0;
    std::vector<uint32_t> keep;  // the chance, out of 2^32, to stay with the slot
    std::vector<int32_t> other;
  };
  struct Cross {
    int first = 0, second = 0;   // category columns
    int second_values = 0;       // the number of ranks of `second`
    std::vector<float> weights;  // [first][second]
  };

  double Logit(const ClickRow& row) const;

  const uint64_t seed_;
  std::vector<Zipf> ranks_;
  std::vector<std::vector<float>> weights_;  // by category column and rank; 0 beyond the end
  std::vector<Cross> crosses_;
};

// The score of the true model on these rows, with standard errors: DeLong's for the AUC (E. DeLong,
// D. DeLong, Clarke-Pearson, 1988), the sample's for the log loss. NaN where undefined.
struct BestScore {
  double positives = 0;  // their share of the rows
  double auc = 0, auc_error = 0;
  double log_loss = 0, log_loss_error = 0;
};
BestScore ScoreTruth(std::span<const double> probabilities, std::span<const uint8_t> labels);

}  // namespace muster::data
