// EmbeddingBag: for each row the sum, mean or sum / sqrt(count) of the table's rows of its ids;
// zeros for a row without ids (TensorFlow's safe_embedding_lookup_sparse).
#include <cmath>

#include "muster/engine/native/layer.h"
#include "muster/math/rows.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const EmbeddingOptions& options, int variable, int ordinal, const Tensor* output)
      : id_list_(static_cast<size_t>(options.id_list)),
        dimension_(static_cast<size_t>(options.dimension)),
        combiner_(options.combiner),
        variable_(variable),
        ordinal_(ordinal),
        output_(output) {}

  void Forward(const Step& step, Worker& worker) override {
    const features::IdList& list = step.batch->id_lists[id_list_];
    const float* const table = step.weights[static_cast<size_t>(variable_)].data;
    if (list.one_per_row()) {
      math::GatherRows(table, dimension_, list.ids.data() + worker.begin,
                       static_cast<size_t>(worker.rows()), output_->value(worker.begin),
                       output_->ld());
      return;
    }
    for (int row = worker.begin; row < worker.end; ++row) {
      float* const sum = output_->value(row);
      math::Fill(sum, dimension_, 0);
      int count = 0;
      for (const int32_t id : IdsOf(list, row)) {
        if (id < 0) continue;
        math::AddTo(table + static_cast<size_t>(id) * dimension_, sum, dimension_);
        ++count;
      }
      if (count > 1) math::Scale(CombinerScale(count), sum, dimension_);
    }
  }

  void Backward(const Step&, Worker&) override {}

  // One worker sums the gradient of the whole table, over the rows of all: the order of the sums
  // is that of the batch. Layers take turns.
  void Reduce(const Step& step, Worker& worker) override {
    if (ordinal_ % worker.count != worker.index) return;
    const features::IdList& list = step.batch->id_lists[id_list_];
    const DistinctRows& distinct = step.distinct[id_list_];
    const size_t elements = distinct.rows.size() * dimension_;
    gradient_ = memory_.Reserve(elements);
    math::Fill(gradient_, elements, 0);
    const int32_t* const positions = distinct.positions.data();
    if (list.one_per_row()) {
      math::ScatterAddRows(output_->gradient(0), output_->ld(), dimension_, positions,
                           list.ids.size(), gradient_);
      return;
    }
    for (int row = 0; row < step.batch->rows; ++row) {
      int count = 0;
      for (const int32_t id : IdsOf(list, row)) count += id >= 0;
      if (count == 0) continue;
      const float scale = CombinerScale(count);
      const size_t end = list.offsets[static_cast<size_t>(row) + 1];
      for (size_t i = list.offsets[static_cast<size_t>(row)]; i < end; ++i) {
        if (positions[i] < 0) continue;
        math::Axpy(scale, output_->gradient(row),
                   gradient_ + static_cast<size_t>(positions[i]) * dimension_, dimension_);
      }
    }
  }

  void Emit(const Step& step, GradientSink& sink) override {
    const DistinctRows& distinct = step.distinct[id_list_];
    sink.Rows(variable_, distinct.rows, {gradient_, distinct.rows.size() * dimension_});
  }

 private:
  static std::span<const int32_t> IdsOf(const features::IdList& list, int row) {
    const auto at = static_cast<size_t>(row);
    return std::span(list.ids).subspan(list.offsets[at], list.offsets[at + 1] - list.offsets[at]);
  }

  float CombinerScale(int count) const {
    switch (combiner_) {
      case features::Combiner::kSum:
        return 1;
      case features::Combiner::kMean:
        return 1.0f / static_cast<float>(count);
      case features::Combiner::kSqrtN:
        return 1.0f / std::sqrt(static_cast<float>(count));
    }
    return 1;
  }

  size_t id_list_, dimension_;
  features::Combiner combiner_;
  int variable_, ordinal_;
  const Tensor* output_;
  float* gradient_ = nullptr;
  math::AlignedBuffer memory_;
};

}  // namespace

std::unique_ptr<Layer> NewEmbeddingLayer(const EmbeddingOptions& options, int variable, int ordinal,
                                         const Tensor* output) {
  return std::make_unique<EmbeddingLayer>(options, variable, ordinal, output);
}

}  // namespace muster::engine::native
