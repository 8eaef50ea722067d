// EmbeddingBag: for each row of the batch, the table's rows of its ids, combined (as TensorFlow's
// safe_embedding_lookup_sparse) or, if they are the steps of a sequence, pooled. With weights w of
// the ids
//   sum: sum of w e    mean: that / sum of w    sqrtn: that / sqrt(sum of w^2)
// where mean and sqrtn leave out ids whose weight is not above 0. The result is 0 for a row without
// ids.
#include <cmath>

#include "muster/engine/native/layer.h"
#include "muster/math/rows.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

using features::Combiner;
using features::IdList;
using features::Pooling;

struct Bag {
  size_t id_list = 0;
  Combiner combiner = Combiner::kMean;
  Pooling pooling = Pooling::kNone;
  const Tensor* output = nullptr;

  // Returns the factor of entry `i` of a row that ends at `end`, before the row's Scale(). For all
  // poolings but kMax.
  float Weight(const IdList& list, size_t i, size_t end) const {
    if (list.ids[i] < 0) return 0;
    if (pooling == Pooling::kLast) return i + 1 == end ? 1 : 0;
    if (pooling != Pooling::kNone) return 1;
    const float weight = list.weight(i);
    return combiner == Combiner::kSum || weight > 0 ? weight : 0;
  }

  float Scale(const IdList& list, int row) const {
    const size_t begin = list.begin(row), end = list.end(row);
    const bool mean = pooling == Pooling::kMean;
    if (mean || pooling == Pooling::kSqrtN) {
      const auto steps = static_cast<float>(end - begin);
      return begin == end ? 0 : 1.0f / (mean ? steps : std::sqrt(steps));
    }
    if (pooling != Pooling::kNone || combiner == Combiner::kSum) return 1;
    float total = 0;
    for (size_t i = begin; i < end; ++i) {
      const float weight = Weight(list, i, end);
      total += combiner == Combiner::kMean ? weight : weight * weight;
    }
    if (total == 0) return 0;
    return 1.0f / (combiner == Combiner::kMean ? total : std::sqrt(total));
  }
};

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const std::vector<EmbeddingOptions>& bags, int variable, int ordinal,
                 const std::vector<const Tensor*>& outputs)
      : dimension_(static_cast<size_t>(bags.front().dimension)),
        max_norm_(static_cast<float>(bags.front().max_norm)),
        l1_(bags.front().l1),
        l2_(bags.front().l2),
        variable_(variable),
        ordinal_(ordinal),
        zeros_(dimension_),
        shares_(dimension_) {
    for (size_t i = 0; i < bags.size(); ++i) {
      bags_.push_back({.id_list = static_cast<size_t>(bags[i].id_list),
                       .combiner = bags[i].combiner,
                       .pooling = bags[i].pooling,
                       .output = outputs[i]});
    }
  }

  void Forward(const Step& step, Worker& worker) override {
    const float* const table = step.weights[static_cast<size_t>(variable_)].data;
    for (const Bag& bag : bags_) {
      const IdList& list = step.batch->id_lists[bag.id_list];
      if (IsPlain(list)) {
        math::GatherRows(table, dimension_, list.ids.data() + worker.begin,
                         static_cast<size_t>(worker.rows()), bag.output->value(worker.begin),
                         bag.output->ld());
        continue;
      }
      for (int row = worker.begin; row < worker.end; ++row) {
        if (bag.pooling == Pooling::kMax) {
          PoolLargest(table, bag, list, row, worker);
        } else {
          Sum(table, bag, list, row, worker);
        }
      }
    }
    if (is_regularized() && step.training && worker.index == 0) {
      const size_t n = TableSize(step);
      if (l1_ != 0) worker.regularization += l1_ * math::SumOfMagnitudes(table, n);
      if (l2_ != 0) worker.regularization += l2_ * math::SumOfSquares(table, n);
    }
  }

  void Backward(const Step&, Worker&) override {}

  // One worker sums the gradient of the whole table, over the rows of all workers: the order of the
  // sums is that of the batch, bag by bag. The embedding layers are divided among the workers.
  void Reduce(const Step& step, Worker& worker) override {
    if (ordinal_ % worker.count != worker.index) return;
    distinct_ = FindDistinct(step, worker);
    const size_t elements = distinct_->rows.size() * dimension_;
    gradient_ = memory_.Reserve(elements);
    math::Fill(gradient_, elements, 0);
    const float* const table = step.weights[static_cast<size_t>(variable_)].data;
    const int32_t* positions = distinct_->positions.data();
    for (const Bag& bag : bags_) {
      const IdList& list = step.batch->id_lists[bag.id_list];
      if (IsPlain(list)) {
        math::ScatterAddRows(bag.output->gradient(0), bag.output->ld(), dimension_, positions,
                             list.ids.size(), gradient_);
      } else {
        for (int row = 0; row < step.batch->rows; ++row) {
          if (bag.pooling == Pooling::kMax) {
            GiveToLargest(table, bag, list, row, positions, worker);
          } else {
            Spread(bag, list, row, positions);
          }
        }
      }
      positions += list.ids.size();
    }
    if (max_norm_ > 0) ThroughClipping(table);
    if (is_regularized()) AddRegularization(step);
  }

  void Emit(const Step& step, GradientSink& sink) override {
    if (is_regularized()) return sink.Dense(variable_, {of_all_rows_, TableSize(step)});
    sink.Rows(variable_, distinct_->rows, {gradient_, distinct_->rows.size() * dimension_});
  }

 private:
  bool is_regularized() const { return l1_ != 0 || l2_ != 0; }

  size_t TableSize(const Step& step) const {
    return static_cast<size_t>(step.weights[static_cast<size_t>(variable_)].rows) * dimension_;
  }

  // Computes the gradient of every row: the gradient of the step's rows, plus the regularisation.
  void AddRegularization(const Step& step) {
    const size_t n = TableSize(step);
    const float* const table = step.weights[static_cast<size_t>(variable_)].data;
    const auto l1 = static_cast<float>(l1_ * step.regularization_share);
    const auto l2 = static_cast<float>(2 * l2_ * step.regularization_share);
    of_all_rows_ = all_memory_.Reserve(n);
    for (size_t i = 0; i < n; ++i) {
      const float w = table[i];
      of_all_rows_[i] = l1 * (static_cast<float>(w > 0) - static_cast<float>(w < 0)) + l2 * w;
    }
    for (size_t i = 0; i < distinct_->rows.size(); ++i) {
      const size_t at = static_cast<size_t>(distinct_->rows[i]) * dimension_;
      math::AddTo(gradient_ + i * dimension_, of_all_rows_ + at, dimension_);
    }
  }

  // Whether each row has at most one id, whose row of the table is used unchanged.
  bool IsPlain(const IdList& list) const {
    return list.one_per_row() && list.weights.empty() && max_norm_ == 0;
  }

  // Returns the table's row. If it is longer than max_norm, returns a scaled-down copy in the
  // worker's memory.
  const float* Row(const float* table, int32_t id, Worker& worker) const {
    if (id < 0) return zeros_.data();
    const float* const row = table + static_cast<size_t>(id) * dimension_;
    if (max_norm_ == 0) return row;
    const auto norm = static_cast<float>(std::sqrt(math::SumOfSquares(row, dimension_)));
    if (!(norm > max_norm_)) return row;
    float* const clipped = worker.workspace.Reserve(dimension_);
    for (size_t j = 0; j < dimension_; ++j) clipped[j] = row[j] * max_norm_ / norm;
    return clipped;
  }

  void Sum(const float* table, const Bag& bag, const IdList& list, int row, Worker& worker) const {
    float* const sum = bag.output->value(row);
    math::Fill(sum, dimension_, 0);
    const size_t end = list.end(row);
    for (size_t i = list.begin(row); i < end; ++i) {
      const float weight = bag.Weight(list, i, end);
      if (weight == 0) continue;
      const float* const from = Row(table, list.ids[i], worker);
      if (weight == 1) {
        math::AddTo(from, sum, dimension_);
      } else {
        math::Axpy(weight, from, sum, dimension_);
      }
    }
    const float scale = bag.Scale(list, row);
    if (scale != 1) math::Scale(scale, sum, dimension_);
  }

  void Spread(const Bag& bag, const IdList& list, int row, const int32_t* positions) {
    const float scale = bag.Scale(list, row);
    const size_t end = list.end(row);
    for (size_t i = list.begin(row); i < end; ++i) {
      const float weight = bag.Weight(list, i, end);
      if (weight == 0) continue;
      math::Axpy(weight * scale, bag.output->gradient(row),
                 gradient_ + static_cast<size_t>(positions[i]) * dimension_, dimension_);
    }
  }

  void PoolLargest(const float* table, const Bag& bag, const IdList& list, int row,
                   Worker& worker) const {
    float* const largest = bag.output->value(row);
    const size_t begin = list.begin(row), end = list.end(row);
    math::Fill(largest, dimension_, 0);
    for (size_t i = begin; i < end; ++i) {
      const float* const from = Row(table, list.ids[i], worker);
      for (size_t j = 0; j < dimension_; ++j) {
        largest[j] = i == begin || from[j] > largest[j] ? from[j] : largest[j];
      }
    }
  }

  // Steps that tie for the largest value share the gradient, as in tf.reduce_max.
  void GiveToLargest(const float* table, const Bag& bag, const IdList& list, int row,
                     const int32_t* positions, Worker& worker) {
    const float* const largest = bag.output->value(row);
    const size_t begin = list.begin(row), end = list.end(row);
    math::Fill(shares_.data(), dimension_, 0);
    for (size_t i = begin; i < end; ++i) {
      const float* const from = Row(table, list.ids[i], worker);
      for (size_t j = 0; j < dimension_; ++j) shares_[j] += from[j] == largest[j];
    }
    for (size_t j = 0; j < dimension_; ++j) shares_[j] = bag.output->gradient(row)[j] / shares_[j];
    for (size_t i = begin; i < end; ++i) {
      if (positions[i] < 0) continue;
      const float* const from = Row(table, list.ids[i], worker);
      float* const to = gradient_ + static_cast<size_t>(positions[i]) * dimension_;
      for (size_t j = 0; j < dimension_; ++j) to[j] += from[j] == largest[j] ? shares_[j] : 0;
    }
  }

  // Turns the gradient of rows as they were read into that of the stored rows x: (g - x (x.g) /
  // |x|^2) max_norm / |x| where |x| is above max_norm.
  void ThroughClipping(const float* table) {
    for (size_t i = 0; i < distinct_->rows.size(); ++i) {
      const float* const row = table + static_cast<size_t>(distinct_->rows[i]) * dimension_;
      const double squares = math::SumOfSquares(row, dimension_);
      const auto norm = static_cast<float>(std::sqrt(squares));
      if (!(norm > max_norm_)) continue;
      float* const gradient = gradient_ + i * dimension_;
      const float along = math::Dot(row, gradient, dimension_) / static_cast<float>(squares);
      math::Axpy(-along, row, gradient, dimension_);
      math::Scale(max_norm_ / norm, gradient, dimension_);
    }
  }

  // The positions of several bags follow one another.
  const DistinctRows* FindDistinct(const Step& step, Worker& worker) {
    if (bags_.size() == 1) return &step.distinct[bags_.front().id_list];
    ids_.clear();
    for (const Bag& bag : bags_) {
      const std::vector<int32_t>& ids = step.batch->id_lists[bag.id_list].ids;
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    }
    worker.finder.Find(ids_, step.weights[static_cast<size_t>(variable_)].rows, &all_distinct_);
    return &all_distinct_;
  }

  size_t dimension_;
  float max_norm_;
  double l1_, l2_;
  int variable_, ordinal_;
  std::vector<Bag> bags_;
  const DistinctRows* distinct_ = nullptr;
  float* gradient_ = nullptr;
  float* of_all_rows_ = nullptr;  // set if there is regularisation
  math::AlignedBuffer memory_, all_memory_;
  std::vector<int32_t> ids_;   // the ids of all bags, if there are several
  DistinctRows all_distinct_;  // the distinct rows of ids_
  std::vector<float> zeros_;   // the row of a step without an id
  std::vector<float> shares_;  // the share of each largest step
};

}  // namespace

std::unique_ptr<Layer> NewEmbeddingLayer(const std::vector<EmbeddingOptions>& bags, int variable,
                                         int ordinal, const std::vector<const Tensor*>& outputs) {
  return std::make_unique<EmbeddingLayer>(bags, variable, ordinal, outputs);
}

}  // namespace muster::engine::native
