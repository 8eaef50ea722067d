// Metrics of retrieval within a batch: the items of a batch are ranked by their scores with a row's
// query, without correction, and the rank of a row is the number of items above its own item. An
// item with the same score is not above it, since another row may have the same item. accuracy is
// the share of rows with rank 0, recall/top_K the share with a rank below K; a row with a score
// that is not finite counts as not found, as in tf.math.in_top_k. A row counts by its reward times
// its weight. A larger batch has more items, and so gives smaller shares.
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/math/vector.h"
#include "muster/metrics/head_metrics.h"

namespace muster::metrics {
namespace {

class InBatchSoftmaxMetrics final : public Metrics {
 public:
  InBatchSoftmaxMetrics(const engine::HeadSpec& head, MetricsSpec spec)
      : spec_(std::move(spec)),
        size_(static_cast<size_t>(head.vector_size)),
        width_(static_cast<size_t>(head.logits_dimension())),
        in_top_(spec_.top_k.size()),
        loss_(head) {}

  void Add(std::span<const float> logits, std::span<const float> labels,
           std::span<const float> weights) override {
    const size_t rows = labels.size();
    for (size_t row = 0; row < rows; ++row) {
      const double reward = double{labels[row]} * (weights.empty() ? 1.0 : weights[row]);
      if (reward <= 0) continue;
      weight_ += reward;
      const float* const query = logits.data() + row * width_;
      const float* const items = logits.data() + size_;
      const float own = math::Dot(query, items + row * width_, size_);
      size_t rank = 0;
      bool is_finite = true;
      for (size_t j = 0; j < rows && is_finite; ++j) {
        const float score = math::Dot(query, items + j * width_, size_);
        is_finite = std::isfinite(score);
        rank += score > own ? 1 : 0;
      }
      if (!is_finite) continue;
      if (rank == 0) first_ += reward;
      for (size_t i = 0; i < in_top_.size(); ++i) {
        if (std::cmp_less(rank, spec_.top_k[i])) in_top_[i] += reward;
      }
    }
  }

  void AddLoss(double weighted_sum, int64_t rows) override { loss_.Add(weighted_sum, rows); }

  absl::Status Merge(const Metrics& other) override {
    MUSTER_ASSIGN_OR_RETURN(const InBatchSoftmaxMetrics* same,
                            SameKind<InBatchSoftmaxMetrics>(other));
    return Merge(same->GetState());
  }

  State GetState() const override {
    State state = {.head = Head(), .sums = {weight_, first_}};
    state.sums.insert(state.sums.end(), in_top_.begin(), in_top_.end());
    loss_.AppendTo(&state.sums);
    return state;
  }

  absl::Status Merge(const State& state) override {
    const size_t sums = 2 + in_top_.size() + LossMeans::kSums;
    MUSTER_RETURN_IF_ERROR(CheckState(state, Head(), sums, /*lists=*/0));
    SumsReader reader(state.sums);
    reader.AddTo({&weight_, &first_});
    reader.AddTo(&in_top_);
    loss_.Merge(&reader);
    return absl::OkStatus();
  }

  std::vector<NamedValue> Values() const override {
    std::vector<NamedValue> values = {{"accuracy", ComputeMean(first_, weight_)},
                                      {"average_loss", ComputeMean(loss_.sum(), weight_)}};
    for (size_t i = 0; i < in_top_.size(); ++i) {
      values.emplace_back(StrCat("recall/top_", spec_.top_k[i]), ComputeMean(in_top_[i], weight_));
    }
    values.emplace_back("loss", loss_.loss());
    return values;
  }

 private:
  std::string Head() const {
    return StrCat("in_batch_softmax, top ", absl::StrJoin(spec_.top_k, ","));
  }

  const MetricsSpec spec_;
  const size_t size_, width_;  // the length of a vector; of a row's logits
  double weight_ = 0, first_ = 0;
  std::vector<double> in_top_;  // by index of spec_.top_k
  LossMeans loss_;
};

}  // namespace

const HeadMetrics kInBatchSoftmaxMetrics = {
    .head = "in_batch_softmax",
    .takes_top_k = true,
    .make = [](const engine::HeadSpec& head, const MetricsSpec& spec,
               const std::vector<std::string>& /*class_names*/) -> std::unique_ptr<Metrics> {
      return std::make_unique<InBatchSoftmaxMetrics>(head, spec);
    }};

}  // namespace muster::metrics
