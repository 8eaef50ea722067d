#include "muster/engine/native/folded_dense.h"

#include <algorithm>
#include <utility>

#include "muster/math/gemm.h"
#include "muster/math/rows.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

// Limits for folding to pay, measured on tables of the census and of clicks.
constexpr int kLeastDimension = 4;
constexpr int64_t kMostTableFloats = int64_t{128} << 10;  // the most products of one table
constexpr int64_t kMostFloats = int64_t{1} << 20;         // the most products of one dense layer

constexpr int64_t kStrideUnit = 16;  // floats: a cache line

struct FoldedBag {
  int variable = 0;
  size_t id_list = 0;
  int column = 0;  // the first column in the dense layer's input
  int dimension = 0;
};

int64_t GetStride(int units) { return (units + kStrideUnit - 1) / kStrideUnit * kStrideUnit; }

class FoldedDenseLayer final : public FoldedDense {
 public:
  FoldedDenseLayer(const NativeGraph::DenseLayerUse& dense, std::vector<FoldedBag> bags)
      : dense_(dense),
        bags_(std::move(bags)),
        stride_(GetStride(dense.output->width)),
        products_(bags_.size()) {
    std::vector<bool> folded(static_cast<size_t>(dense.input->width), false);
    for (const FoldedBag& bag : bags_) {
      std::fill_n(folded.begin() + bag.column, bag.dimension, true);
    }
    for (int column = 0; column < dense.input->width; ++column) {
      if (!folded[static_cast<size_t>(column)]) left_.push_back(column);
    }
  }

  void Freeze(std::span<const VariableView> weights) override {
    const float* const kernel = weights[static_cast<size_t>(dense_.kernel)].data;
    const int units = dense_.output->width;
    for (size_t i = 0; i < bags_.size(); ++i) {
      const VariableView& table = weights[static_cast<size_t>(bags_[i].variable)];
      MultiplyTable(table, kernel + int64_t{bags_[i].column} * units, bags_[i].dimension,
                    &products_[i]);
    }
    CopyRestOfKernel(kernel,
                     dense_.bias < 0 ? nullptr : weights[static_cast<size_t>(dense_.bias)].data);
  }

  bool Fits(const features::FeatureBatch& batch) const override {
    return std::ranges::all_of(bags_, [&](const FoldedBag& bag) {
      const features::IdList& list = batch.id_lists[bag.id_list];
      return list.one_per_row() && list.weights.empty();
    });
  }

  void Reserve(const Step& step, int) override {
    tables_.clear();
    for (size_t i = 0; i < bags_.size(); ++i) {
      tables_.push_back({products_[i].data, step.batch->id_lists[bags_[i].id_list].ids.data()});
    }
  }

  void Forward(const Step&, Worker& worker) override {
    const Tensor& input = *dense_.input;
    const Tensor& output = *dense_.output;
    const bool relu = dense_.activation == Activation::kRelu;
    const math::RowSum sum = {.tables = tables_.data(),
                              .count = tables_.size(),
                              .stride = stride_,
                              .bias = bias_,
                              .inputs = input.value(0),
                              .ld_inputs = input.ld(),
                              .columns = left_.data(),
                              .k = static_cast<int>(left_.size()),
                              .kernel = kernel_of_left_,
                              .relu = relu};
    math::SumRows(sum, static_cast<size_t>(worker.begin), static_cast<size_t>(worker.rows()),
                  static_cast<size_t>(output.width), output.value(worker.begin), output.ld());
    if (!relu) {
      ApplyActivation(dense_.activation, output.value(worker.begin), output.ld(), worker.rows(),
                      output.width);
    }
  }

  void Backward(const Step&, Worker&) override {}

 private:
  // (1 + rows) x stride_: zeros for "no id", then the product of each row.
  struct Products {
    float* data = nullptr;
    math::AlignedBuffer memory;
  };

  void MultiplyTable(const VariableView& table, const float* kernel, int dimension,
                     Products* products) {
    const auto floats = static_cast<size_t>((1 + table.rows) * stride_);
    products->data = products->memory.Reserve(floats);
    math::Fill(products->data, floats, 0);
    const int units = dense_.output->width;
    math::Gemm({.m = static_cast<int>(table.rows),
                .n = units,
                .k = dimension,
                .a = table.data,
                .a_row = dimension,
                .b = kernel,
                .ldb = units,
                .c = products->data + stride_,
                .ldc = stride_},
               workspace_);
  }

  // Copies the bias (or zeros) and the kernel's rows for left_, each with stride_.
  void CopyRestOfKernel(const float* kernel, const float* bias) {
    const size_t floats = (left_.size() + 1) * static_cast<size_t>(stride_);
    float* to = kernel_memory_.Reserve(floats);
    math::Fill(to, floats, 0);
    const int units = dense_.output->width;
    if (bias != nullptr) std::copy_n(bias, units, to);
    bias_ = to;
    kernel_of_left_ = to += stride_;
    for (const int32_t column : left_) {
      std::copy_n(kernel + int64_t{column} * units, units, to);
      to += stride_;
    }
  }

  const NativeGraph::DenseLayerUse dense_;
  const std::vector<FoldedBag> bags_;
  const int64_t stride_;
  std::vector<int32_t> left_;  // columns of the input that come from no table
  std::vector<Products> products_;
  std::vector<math::RowTable> tables_;  // for the current batch
  const float* bias_ = nullptr;
  const float* kernel_of_left_ = nullptr;
  math::AlignedBuffer kernel_memory_, workspace_;
};

// Makes the bags that only this dense layer reads, as long as their products stay small.
std::vector<FoldedBag> MakeBags(const NativeGraph& graph, const NativeGraph::DenseLayerUse& dense) {
  std::vector<FoldedBag> bags;
  const Tensor& input = *dense.input;
  if (input.storage->readers != 1 || input.width != input.storage->width) return bags;
  int64_t total = 0;
  for (const NativeGraph::BagUse& bag : graph.bag_uses) {
    const int dimension = bag.output->width;
    if (bag.output->storage != input.storage || !bag.as_it_is || dimension < kLeastDimension) {
      continue;
    }
    const VariableSpec& table = graph.variables[static_cast<size_t>(bag.variable)];
    if (table.growth) continue;  // such a table is never in memory as a whole
    const int64_t rows = table.shape[0];
    const int64_t floats = (1 + rows) * GetStride(dense.output->width);
    if (floats > kMostTableFloats || total + floats > kMostFloats) continue;
    total += floats;
    bags.push_back({.variable = bag.variable,
                    .id_list = static_cast<size_t>(bag.id_list),
                    .column = static_cast<int>(bag.output->column),
                    .dimension = dimension});
  }
  return bags;
}

}  // namespace

FoldedGraph Fold(const NativeGraph& graph) {
  FoldedGraph folded;
  std::vector<Layer*> in_place(graph.layers.size());
  // by embedding layer: the number of its bags that are not folded
  std::vector<int> bags_left(graph.layers.size(), 0);
  for (size_t i = 0; i < in_place.size(); ++i) in_place[i] = graph.layers[i].get();
  for (const NativeGraph::BagUse& bag : graph.bag_uses) ++bags_left[bag.layer];
  for (const NativeGraph::DenseLayerUse& dense : graph.dense_layers) {
    std::vector<FoldedBag> bags = MakeBags(graph, dense);
    if (bags.empty()) continue;
    for (const NativeGraph::BagUse& use : graph.bag_uses) {
      const auto is_use = [&](const FoldedBag& bag) {
        return use.output->storage == dense.input->storage && bag.column == use.output->column;
      };
      if (std::ranges::any_of(bags, is_use) && --bags_left[use.layer] == 0) {
        in_place[use.layer] = nullptr;
      }
    }
    folded.folds.push_back(std::make_unique<FoldedDenseLayer>(dense, std::move(bags)));
    in_place[dense.layer] = folded.folds.back().get();
  }
  if (folded.folds.empty()) return folded;
  std::ranges::copy_if(in_place, std::back_inserter(folded.layers),
                       [](const Layer* layer) { return layer != nullptr; });
  return folded;
}

}  // namespace muster::engine::native
