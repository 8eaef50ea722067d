// Linear: y = sum over the ids of a row of the tables' rows, each times the weight of its id, +
// dense columns * weights + bias.
#include <algorithm>

#include "muster/engine/native/layer.h"
#include "muster/math/gemm.h"
#include "muster/math/rows.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

class LinearLayer final : public Layer {
 public:
  LinearLayer(const LinearOptions& options, LinearVariables variables, const Tensor* output)
      : options_(options),
        variables_(std::move(variables)),
        output_(output),
        units_(static_cast<size_t>(options.units)),
        bias_gradient_(options.units),
        table_gradients_(options.tables.size()),
        table_memory_(options.tables.size()) {
    for (const auto& dense : options.dense) {
      dense_gradients_.emplace_back(int64_t{dense.width} * options.units);
    }
  }

  void Reserve(const Step& step, int workers) override {
    // Sums are taken in a separate vector, since the output may be a column of a wider matrix.
    sums_ = sum_memory_.Reserve(static_cast<size_t>(step.batch->rows) * units_);
    if (!step.training) return;
    bias_gradient_.Reserve(workers);
    for (GradientShares& gradient : dense_gradients_) gradient.Reserve(workers);
  }

  void Forward(const Step& step, Worker& worker) override {
    float* const sums = Sums(worker.begin);
    const auto rows = static_cast<size_t>(worker.rows());
    StartSums(step, sums, rows);
    for (size_t t = 0; t < options_.tables.size(); ++t) AddTable(step, t, worker);
    for (size_t d = 0; d < options_.dense.size(); ++d) {
      const int width = options_.dense[d].width;
      math::Gemm({.m = worker.rows(),
                  .n = options_.units,
                  .k = width,
                  .a = Column(step, d, worker.begin),
                  .a_row = width,
                  .b = Weights(step, variables_.dense[d]),
                  .ldb = options_.units,
                  .c = sums,
                  .ldc = options_.units,
                  .accumulate = true},
                 worker.workspace);
    }
    for (int row = worker.begin; row < worker.end; ++row) {
      std::copy_n(Sums(row), units_, output_->value(row));
    }
  }

  void Backward(const Step& step, Worker& worker) override {
    const float* const dy = output_->gradient(worker.begin);
    for (size_t d = 0; d < options_.dense.size(); ++d) {
      const int width = options_.dense[d].width;
      float* const share = dense_gradients_[d].share(worker.index);
      const float* const x = Column(step, d, worker.begin);
      if (options_.units == 1) {
        // dw' = dy' x
        math::Gemm({.m = 1,
                    .n = width,
                    .k = worker.rows(),
                    .a = dy,
                    .a_col = output_->ld(),
                    .b = x,
                    .ldb = width,
                    .c = share},
                   worker.workspace);
        continue;
      }
      // dw = x' dy
      math::Gemm({.m = width,
                  .n = options_.units,
                  .k = worker.rows(),
                  .a = x,
                  .a_row = 1,
                  .a_col = width,
                  .b = dy,
                  .ldb = output_->ld(),
                  .c = share,
                  .ldc = options_.units},
                 worker.workspace);
    }
    if (variables_.bias >= 0) {
      math::ColumnSums(dy, worker.rows(), options_.units, output_->ld(), false,
                       bias_gradient_.share(worker.index));
    }
  }

  // The tables are divided among the workers; each worker sums over the whole batch in its order.
  void Reduce(const Step& step, Worker& worker) override {
    for (size_t t = static_cast<size_t>(worker.index); t < options_.tables.size();
         t += static_cast<size_t>(worker.count)) {
      SumTable(step, t);
    }
    for (GradientShares& gradient : dense_gradients_) gradient.Reduce(worker);
    if (variables_.bias >= 0) bias_gradient_.Reduce(worker);
  }

  void Emit(const Step& step, GradientSink& sink) override {
    for (size_t t = 0; t < options_.tables.size(); ++t) {
      const DistinctRows& distinct = step.distinct[GetList(t)];
      sink.Rows(variables_.tables[t], distinct.rows,
                {table_gradients_[t], distinct.rows.size() * units_});
    }
    for (size_t d = 0; d < options_.dense.size(); ++d) {
      sink.Dense(variables_.dense[d], dense_gradients_[d].sum());
    }
    if (variables_.bias >= 0) sink.Dense(variables_.bias, bias_gradient_.sum());
  }

 private:
  size_t GetList(size_t table) const { return static_cast<size_t>(options_.tables[table].id_list); }
  const features::IdList& GetIds(const Step& step, size_t table) const {
    return step.batch->id_lists[GetList(table)];
  }
  static const float* Weights(const Step& step, int variable) {
    return step.weights[static_cast<size_t>(variable)].data;
  }
  const float* Column(const Step& step, size_t d, int row) const {
    const auto& column = step.batch->dense[static_cast<size_t>(options_.dense[d].dense)];
    return column.values.data() + int64_t{row} * options_.dense[d].width;
  }

  float* Sums(int row) const { return sums_ + static_cast<size_t>(row) * units_; }

  // sums[row] = bias
  void StartSums(const Step& step, float* sums, size_t rows) const {
    const float* const bias = variables_.bias < 0 ? nullptr : Weights(step, variables_.bias);
    if (bias == nullptr || units_ == 1) {
      math::Fill(sums, rows * units_, bias == nullptr ? 0 : *bias);
      return;
    }
    for (size_t row = 0; row < rows; ++row) std::copy_n(bias, units_, sums + row * units_);
  }

  // sums[row] += the rows of the table that the row's ids name, times their weights
  void AddTable(const Step& step, size_t t, const Worker& worker) const {
    const features::IdList& list = GetIds(step, t);
    const float* const table = Weights(step, variables_.tables[t]);
    if (list.one_per_row() && list.weights.empty() && units_ == 1) {
      math::GatherAdd(table, list.ids.data() + worker.begin, static_cast<size_t>(worker.rows()),
                      Sums(worker.begin));
      return;
    }
    for (int row = worker.begin; row < worker.end; ++row) {
      const size_t end = list.end(row);
      for (size_t i = list.begin(row); i < end; ++i) {
        if (list.ids[i] < 0) continue;
        math::Axpy(list.weight(i), table + static_cast<size_t>(list.ids[i]) * units_, Sums(row),
                   units_);
      }
    }
  }

  void SumTable(const Step& step, size_t table) {
    const features::IdList& list = GetIds(step, table);
    const DistinctRows& distinct = step.distinct[GetList(table)];
    float* const gradient = table_memory_[table].Reserve(distinct.rows.size() * units_);
    table_gradients_[table] = gradient;
    math::Fill(gradient, distinct.rows.size() * units_, 0);
    const int32_t* const positions = distinct.positions.data();
    if (list.one_per_row() && list.weights.empty()) {
      math::ScatterAddRows(output_->gradient(0), output_->ld(), units_, positions, list.ids.size(),
                           gradient);
      return;
    }
    for (int row = 0; row < step.batch->rows; ++row) {
      const size_t end = list.end(row);
      for (size_t i = list.begin(row); i < end; ++i) {
        if (positions[i] < 0) continue;
        math::Axpy(list.weight(i), output_->gradient(row),
                   gradient + static_cast<size_t>(positions[i]) * units_, units_);
      }
    }
  }

  LinearOptions options_;
  LinearVariables variables_;
  const Tensor* output_;
  const size_t units_;
  float* sums_ = nullptr;
  math::AlignedBuffer sum_memory_;
  GradientShares bias_gradient_;
  std::vector<GradientShares> dense_gradients_;
  std::vector<float*> table_gradients_;
  std::vector<math::AlignedBuffer> table_memory_;
};

}  // namespace

std::unique_ptr<Layer> NewLinearLayer(const LinearOptions& options, LinearVariables variables,
                                      const Tensor* output) {
  return std::make_unique<LinearLayer>(options, std::move(variables), output);
}

}  // namespace muster::engine::native
