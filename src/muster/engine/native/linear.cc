// Linear: y = sum of the tables' weights of a row's ids + dense columns * weights + bias.
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
        bias_gradient_(1),
        table_gradients_(options.tables.size()),
        table_memory_(options.tables.size()) {
    for (const auto& dense : options.dense) dense_gradients_.emplace_back(dense.width);
  }

  void Reserve(int rows, int workers, bool training) override {
    // Sums are taken in a vector of their own; the output may be a column of a wider matrix.
    sums_ = sum_memory_.Reserve(static_cast<size_t>(rows));
    if (!training) return;
    bias_gradient_.Reserve(workers);
    for (GradientShares& gradient : dense_gradients_) gradient.Reserve(workers);
  }

  void Forward(const Step& step, Worker& worker) override {
    float* const sums = sums_ + worker.begin;
    const auto rows = static_cast<size_t>(worker.rows());
    math::Fill(sums, rows, variables_.bias < 0 ? 0 : *Weights(step, variables_.bias));
    for (size_t t = 0; t < options_.tables.size(); ++t) {
      const features::IdList& list = IdsOf(step, t);
      const float* const table = Weights(step, variables_.tables[t]);
      if (list.one_per_row()) {
        math::GatherAdd(table, list.ids.data() + worker.begin, rows, sums);
        continue;
      }
      for (int row = worker.begin; row < worker.end; ++row) {
        const size_t end = list.offsets[static_cast<size_t>(row) + 1];
        for (size_t i = list.offsets[static_cast<size_t>(row)]; i < end; ++i) {
          if (list.ids[i] >= 0) sums_[row] += table[list.ids[i]];
        }
      }
    }
    for (size_t d = 0; d < options_.dense.size(); ++d) {
      const int width = options_.dense[d].width;
      math::Gemm({.m = worker.rows(),
                  .n = 1,
                  .k = width,
                  .a = Column(step, d, worker.begin),
                  .a_row = width,
                  .b = Weights(step, variables_.dense[d]),
                  .ldb = 1,
                  .c = sums,
                  .ldc = 1,
                  .accumulate = true},
                 worker.workspace);
    }
    for (int row = worker.begin; row < worker.end; ++row) *output_->value(row) = sums_[row];
  }

  void Backward(const Step& step, Worker& worker) override {
    const float* const dy = output_->gradient(worker.begin);
    for (size_t d = 0; d < options_.dense.size(); ++d) {
      // dw' = dy' x
      const int width = options_.dense[d].width;
      math::Gemm({.m = 1,
                  .n = width,
                  .k = worker.rows(),
                  .a = dy,
                  .a_col = output_->ld(),
                  .b = Column(step, d, worker.begin),
                  .ldb = width,
                  .c = dense_gradients_[d].share(worker.index)},
                 worker.workspace);
    }
    if (variables_.bias >= 0) {
      math::ColumnSums(dy, worker.rows(), 1, output_->ld(), false,
                       bias_gradient_.share(worker.index));
    }
  }

  // Tables are dealt to the workers; each sums over the whole batch in its order.
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
      const DistinctRows& distinct = step.distinct[ListOf(t)];
      sink.Rows(variables_.tables[t], distinct.rows, {table_gradients_[t], distinct.rows.size()});
    }
    for (size_t d = 0; d < options_.dense.size(); ++d) {
      sink.Dense(variables_.dense[d], dense_gradients_[d].sum());
    }
    if (variables_.bias >= 0) sink.Dense(variables_.bias, bias_gradient_.sum());
  }

 private:
  size_t ListOf(size_t table) const { return static_cast<size_t>(options_.tables[table].id_list); }
  const features::IdList& IdsOf(const Step& step, size_t table) const {
    return step.batch->id_lists[ListOf(table)];
  }
  static const float* Weights(const Step& step, int variable) {
    return step.weights[static_cast<size_t>(variable)].data;
  }
  const float* Column(const Step& step, size_t d, int row) const {
    const auto& column = step.batch->dense[static_cast<size_t>(options_.dense[d].dense)];
    return column.values.data() + int64_t{row} * options_.dense[d].width;
  }

  void SumTable(const Step& step, size_t table) {
    const features::IdList& list = IdsOf(step, table);
    const DistinctRows& distinct = step.distinct[ListOf(table)];
    float* const gradient = table_memory_[table].Reserve(distinct.rows.size());
    table_gradients_[table] = gradient;
    math::Fill(gradient, distinct.rows.size(), 0);
    const int32_t* const positions = distinct.positions.data();
    if (list.one_per_row()) {
      math::ScatterAddRows(output_->gradient(0), output_->ld(), 1, positions, list.ids.size(),
                           gradient);
      return;
    }
    for (int row = 0; row < step.batch->rows; ++row) {
      const size_t end = list.offsets[static_cast<size_t>(row) + 1];
      for (size_t i = list.offsets[static_cast<size_t>(row)]; i < end; ++i) {
        if (positions[i] >= 0) gradient[positions[i]] += *output_->gradient(row);
      }
    }
  }

  LinearOptions options_;
  LinearVariables variables_;
  const Tensor* output_;
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
