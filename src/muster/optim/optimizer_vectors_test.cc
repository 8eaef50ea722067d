// Compares updates with those of TensorFlow's kernels, computed by make_test_vectors.py, and of
// Keras 3's optimizers, computed by make_keras_vectors.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "muster/optim/spec_words.h"

namespace muster::optim {
namespace {

constexpr int kSteps = 100;
constexpr int kIdsAStep = 6;
constexpr double kTolerance = 1e-6;

// The same numbers as those of class Numbers in make_test_vectors.py.
class Numbers {
 public:
  uint32_t Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  std::vector<float> Floats(int64_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(Next() * 0x1p-24 - 0.5);
    return values;
  }
  std::vector<int32_t> Ids(int64_t rows) {
    std::vector<int32_t> ids(kIdsAStep);
    for (int32_t& id : ids) id = static_cast<int32_t>(Next() % rows);
    return ids;
  }

 private:
  uint32_t state_ = 12345;
};

struct VectorCase {
  std::string name;
  OptimizerSpec spec;
  int64_t rows = 0, cols = 0;
  std::map<std::pair<int, std::string>, std::vector<float>> arrays;  // by step and name
};

std::vector<VectorCase> CommittedVectors(const char* path) {
  std::ifstream file(path);
  std::vector<VectorCase> cases;
  VectorCase current;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "spec") {
      words >> current.name;
      current.spec = ParseSpecWords(words);
    } else if (first == "case") {
      words >> current.rows >> current.cols;
      cases.push_back(current);
    } else {
      std::string array;
      words >> array;
      auto& values = cases.back().arrays[{std::stoi(first), array}];
      for (float value; words >> value;) values.push_back(value);
    }
  }
  return cases;
}

// The gradients of each distinct id added up, in order of first appearance.
void SumDuplicates(RowLayout layout, std::vector<int32_t>* ids, std::vector<float>* gradient) {
  std::vector<int32_t> distinct;
  std::vector<float> sums;
  for (size_t i = 0; i < ids->size(); ++i) {
    const auto found = std::find(distinct.begin(), distinct.end(), (*ids)[i]);
    const size_t at = (found - distinct.begin()) * layout.width();
    if (found == distinct.end()) {
      distinct.push_back((*ids)[i]);
      sums.resize(sums.size() + layout.width());
    }
    for (int64_t j = 0; j < layout.cols; ++j) {
      const float g = (*gradient)[i * layout.cols + j];
      sums[at + j] += g;
      if (layout.squares) sums[at + layout.cols + j] += g * g;
    }
  }
  *ids = std::move(distinct);
  *gradient = std::move(sums);
}

// A variable and its slots.
struct State {
  State(const Optimizer& optimizer, std::vector<float> initial) : weights(std::move(initial)) {
    for (const SlotSpec& slot : optimizer.slots()) {
      slots.emplace_back(weights.size(), slot.initial_value);
      names.push_back(slot.name);
    }
    for (auto& slot : slots) pointers.push_back(slot.data());
  }
  std::vector<float> weights;
  std::vector<std::vector<float>> slots;
  std::vector<std::string> names;
  std::vector<float*> pointers;
};

// The largest error relative to the value or, if that is greater, to `floor` times the largest
// value of the array: a weight near 0 consists of the rounding errors of terms that cancel.
double LargestError(std::span<const float> ours, std::span<const float> theirs, double floor) {
  double largest = 0, error = 0;
  for (const float x : theirs) largest = std::max<double>(largest, std::fabs(x));
  for (size_t i = 0; i < ours.size(); ++i) {
    const double difference = std::fabs(double{ours[i]} - double{theirs[i]});
    if (difference == 0) continue;
    error = std::max(error, difference / std::max<double>(std::fabs(theirs[i]), floor * largest));
  }
  return error;
}

// Of Keras's rules only the weights are compared. TensorFlow's SGD adds gradients of one row one by
// one, and its sparse RMSProp has an approximate reciprocal root: for these two the error is
// relative to the array's largest value. That is the loosest measure here, and no looser than
// kTolerance * max(1, largest).
double GetFloor(const OptimizerSpec& spec) {
  if (spec.rule == OptimizerSpec::Rule::kKeras) return 1;
  const bool coarse = spec.kind == "sgd" || spec.kind == "rmsprop";
  return coarse ? 1 : 0.1;
}

void ExpectVectors(const std::vector<VectorCase>& cases) {
  for (const VectorCase& one : cases) {
    const auto optimizer = NewOptimizer(one.spec);
    ASSERT_TRUE(optimizer.ok()) << one.name << ": " << optimizer.status();
    Numbers numbers;
    State state(**optimizer, numbers.Floats(std::max<int64_t>(one.rows, 1) * one.cols));
    for (int step = 0; step < kSteps; ++step) {
      if (one.rows == 0) {
        (*optimizer)->ApplyDense(state.weights, state.pointers, numbers.Floats(one.cols), step);
      } else {
        std::vector<int32_t> ids = numbers.Ids(one.rows);
        std::vector<float> gradient = numbers.Floats(kIdsAStep * one.cols);
        SumDuplicates((*optimizer)->GetLayout(one.cols), &ids, &gradient);
        StepTable(**optimizer, state.weights, one.cols, state.pointers, ids, gradient, step);
      }
      if (!one.arrays.contains({step + 1, "weights"})) continue;
      for (size_t k = 0; k <= state.slots.size(); ++k) {
        const std::string name = k == 0 ? "weights" : state.names[k - 1];
        const std::vector<float>& ours = k == 0 ? state.weights : state.slots[k - 1];
        const std::vector<float>& theirs = one.arrays.at({step + 1, name});
        ASSERT_EQ(ours.size(), theirs.size());
        EXPECT_LE(LargestError(ours, theirs, GetFloor(one.spec)), kTolerance)
            << one.name << " " << one.rows << " x " << one.cols << " " << name << " step "
            << step + 1;
      }
    }
  }
}

TEST(OptimizerVectorsTest, AgreesWithTensorFlowsKernels) {
  const std::vector<VectorCase> cases = CommittedVectors(MUSTER_TESTDATA "/updates.txt");
  ASSERT_EQ(cases.size(), 84u);
  ExpectVectors(cases);
}

TEST(OptimizerVectorsTest, AgreesWithKerasWhereIdsRepeat) {
  const std::vector<VectorCase> cases = CommittedVectors(MUSTER_TESTDATA "/keras_updates.txt");
  ASSERT_EQ(cases.size(), 84u);
  for (const VectorCase& one : cases) ASSERT_EQ(one.spec.rule, OptimizerSpec::Rule::kKeras);
  ExpectVectors(cases);
}

}  // namespace
}  // namespace muster::optim
