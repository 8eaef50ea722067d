// Shared by the tests of engines: weights, a sink that records, parts of a batch, sums of two
// replicas.
#pragma once

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/random.h"
#include "muster/engine/engine.h"

namespace muster::engine {

// Holds an engine's variables, filled with normal numbers (variances are positive).
class TestWeights {
 public:
  explicit TestWeights(const Engine& engine, double scale = 0.5) : specs_(engine.variables()) {
    RandomStream random(20250103, RandomPurpose::kInitialWeights, 1);
    for (const VariableSpec& spec : specs_) {
      auto& memory = memories_.emplace_back(static_cast<size_t>(spec.elements()));
      for (float& w : memory) {
        w = static_cast<float>(scale * random.Normal());
        if (spec.kind == VariableKind::kState) w = std::fabs(w) + 0.5f;
      }
      const int64_t rows = spec.shape.empty() ? 1 : spec.shape[0];
      views_.push_back({memory.data(), rows, spec.elements() / rows});
    }
  }

  std::span<const VariableView> views() const { return views_; }
  std::vector<VariableView>& mutable_views() { return views_; }
  std::vector<float>& operator[](std::string_view name) { return memories_[GetIndex(name)]; }
  std::vector<float>& at(size_t variable) { return memories_[variable]; }
  size_t GetIndex(std::string_view name) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].name == name) return i;
    }
    return specs_.size();
  }

 private:
  std::span<const VariableSpec> specs_;
  std::vector<std::vector<float>> memories_;
  std::vector<VariableView> views_;
};

// Records what one step gives. Table gradients are also spread out to dense ones.
class RecordingSink final : public GradientSink {
 public:
  explicit RecordingSink(const Engine& engine, bool with_squares = false)
      : wants_squares(with_squares), specs_(engine.variables()) {}

  void Dense(int variable, std::span<const float> gradient) override {
    const std::string& name = Called(variable);
    dense[name].assign(gradient.begin(), gradient.end());
  }
  void Rows(int variable, std::span<const int32_t> given_rows,
            std::span<const float> gradient) override {
    const std::string& name = Called(variable);
    const VariableSpec& spec = specs_[static_cast<size_t>(variable)];
    rows[name].assign(given_rows.begin(), given_rows.end());
    auto& spread = dense[name];
    spread.assign(static_cast<size_t>(spec.elements()), 0);
    const auto cols = static_cast<size_t>(spec.shape[1]);
    const size_t width = wants_squares ? 2 * cols : cols;
    for (size_t i = 0; i < given_rows.size(); ++i) {
      const auto row = static_cast<size_t>(given_rows[i]) * cols;
      if (spread.size() < row + cols) spread.resize(row + cols);  // a block may have more rows
      const auto at = gradient.subspan(i * width, width);
      std::copy_n(at.begin(), cols, spread.begin() + static_cast<int64_t>(row));
      if (wants_squares) squares[name].insert(squares[name].end(), at.begin() + cols, at.end());
    }
  }
  bool WantsSquares(int /*variable*/) const override { return wants_squares; }
  void Statistic(int variable, std::span<const float> value) override {
    statistics[Called(variable)].assign(value.begin(), value.end());
  }

  using Values = std::map<std::string, std::vector<float>, std::less<>>;
  const bool wants_squares;
  std::vector<std::string> order;  // the order of the calls
  Values dense, statistics;
  Values squares;  // for tables: one row for each of `rows`
  std::map<std::string, std::vector<int32_t>, std::less<>> rows;

 private:
  const std::string& Called(int variable) {
    return order.emplace_back(specs_[static_cast<size_t>(variable)].name);
  }

  std::span<const VariableSpec> specs_;
};

// Returns the elements from part `begin` up to `end` of `values`, which has `count` equal parts.
template <typename T>
std::vector<T> GetPart(const std::vector<T>& all, int count, int begin, int end) {
  const size_t each = all.size() / static_cast<size_t>(count);
  return {all.begin() + static_cast<int64_t>(each) * begin,
          all.begin() + static_cast<int64_t>(each) * end};
}

// Returns rows [begin, end) of a batch that has at least one row.
inline features::FeatureBatch GetRows(const features::FeatureBatch& batch, int begin, int end) {
  features::FeatureBatch part;
  part.rows = end - begin;
  for (const features::DenseColumn& column : batch.dense) {
    part.dense.push_back({column.width, GetPart(column.values, batch.rows, begin, end)});
  }
  for (const features::IdList& list : batch.id_lists) {
    features::IdList& cut = part.id_lists.emplace_back();
    const auto first = static_cast<int64_t>(list.begin(begin));
    const auto last = static_cast<int64_t>(list.begin(end));
    cut.ids.assign(list.ids.begin() + first, list.ids.begin() + last);
    if (!list.weights.empty()) {
      cut.weights.assign(list.weights.begin() + first, list.weights.begin() + last);
    }
    for (int row = begin; !list.one_per_row() && row <= end; ++row) {
      cut.offsets.push_back(static_cast<uint32_t>(list.begin(row) - list.begin(begin)));
    }
  }
  part.labels = GetPart(batch.labels, batch.rows, begin, end);
  part.weights = GetPart(batch.weights, batch.rows, begin, end);
  for (const features::RawColumn& column : batch.raw) {
    features::RawColumn& cut = part.raw.emplace_back(column);
    if (column.offsets.empty()) {
      cut.bytes = GetPart(column.bytes, batch.rows, begin, end);
      continue;
    }
    const size_t each = (column.offsets.size() - 1) / static_cast<size_t>(batch.rows);
    const auto first = column.offsets.begin() + static_cast<int64_t>(each) * begin;
    const auto last = column.offsets.begin() + static_cast<int64_t>(each) * end;
    cut.offsets.clear();
    for (auto offset = first; offset <= last; ++offset) cut.offsets.push_back(*offset - *first);
    cut.bytes.assign(column.bytes.begin() + static_cast<int64_t>(*first),
                     column.bytes.begin() + static_cast<int64_t>(*last));
  }
  return part;
}

// Sums the values of two replicas, each of which runs on a thread.
class SumsOfTwo {
 public:
  class Side : public ReplicaSums {
   public:
    Side(SumsOfTwo& both, size_t index) : both_(both), index_(index) {}
    absl::Status Add(std::span<double> values) override {
      if (calls++ == fail_at) return absl::AbortedError("the other one was lost");
      both_.given_[index_].assign(values.begin(), values.end());
      both_.barrier_.arrive_and_wait();
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = both_.given_[0].at(i) + both_.given_[1].at(i);
      }
      both_.barrier_.arrive_and_wait();
      return absl::OkStatus();
    }
    int calls = 0;
    int fail_at = -1;

   private:
    SumsOfTwo& both_;
    const size_t index_;
  };

  std::array<Side, 2> sides = {{{*this, 0}, {*this, 1}}};

 private:
  std::barrier<> barrier_{2};
  std::array<std::vector<double>, 2> given_;
};

}  // namespace muster::engine
