// head: in_batch_softmax. A row's logits are the vectors of its query and its item, `vector_size`
// numbers each, and, if the loss is corrected, the probability that the row's item is in a batch. A
// label is the reward of the pair, 0 or more: a pair of reward 0 teaches nothing itself, but the
// other queries of the batch are compared with its item.
//
// With q_i, v_j of the rows of a batch, temperature t and probabilities p_j, the loss of row i is
//   r_i (log sum over j of exp(s_ij) - s_ii),   s_ij = <q_i, v_j> / t - log p_j
// Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations",
// RecSys 2019, equations 2 to 5. Without correction log p_j is left out. p below 1e-12 counts as
// 1e-12. Where several replicas train, each compares the rows of its own share of the batch.
// Predictions: score 1, <q_i, v_i>; query and item, vector_size each.
#include <algorithm>
#include <cmath>
#include <vector>

#include "muster/engine/heads/head_kind.h"
#include "muster/engine/heads/head_of_spec.h"
#include "muster/formats/yaml_emitter.h"
#include "muster/math/gemm.h"
#include "muster/math/vector.h"

namespace muster::engine {
namespace {

constexpr float kLeastProbability = 1e-12f;
constexpr int kBlock = 64;  // the number of rows whose scores are computed at a time

// The parts of a batch's logits.
struct PairVectors {
  PairVectors(const HeadSpec& spec, std::span<const float> logits)
      : size(spec.vector_size),
        width(spec.logits_dimension()),
        rows(static_cast<int>(logits.size()) / width),
        query(logits.data()),
        item(logits.data() + size),
        probability(width > 2 * size ? logits.data() + int64_t{2} * size : nullptr) {}

  // Computes the scores of the queries of rows [begin, begin + n) with all items: n x rows, divided
  // by the temperature, without the correction.
  void Scores(int begin, int n, float temperature, math::AlignedBuffer& workspace,
              float* scores) const {
    math::Gemm({.m = n,
                .n = rows,
                .k = size,
                .a = query + int64_t{begin} * width,
                .a_row = width,
                .b = item,
                .ldb = width,
                .b_transposed = true,
                .c = scores,
                .ldc = rows},
               workspace);
    math::Scale(1 / temperature, scores, static_cast<size_t>(n) * static_cast<size_t>(rows));
  }

  int size, width, rows;
  const float* query;
  const float* item;
  const float* probability;  // null: no correction
};

class InBatchSoftmaxLoss final : public HeadOfSpec {
 public:
  explicit InBatchSoftmaxLoss(const HeadSpec& spec)
      : HeadOfSpec(spec), temperature_(static_cast<float>(spec.temperature)) {}

  bool couples_rows() const override { return true; }

  void Loss(std::span<const float> logits, std::span<const float> labels,
            std::span<const float> weights, float scale, double* loss_sum,
            std::span<float> gradient) const override {
    const PairVectors pairs(spec_, logits);
    math::AlignedBuffer memory, workspace;
    const auto rows = static_cast<size_t>(pairs.rows);
    float* const scores = memory.Reserve(rows * kBlock);
    std::vector<float> corrections(rows, 0);
    for (size_t j = 0; pairs.probability != nullptr && j < rows; ++j) {
      const float p = pairs.probability[static_cast<int64_t>(j) * pairs.width];
      corrections[j] = std::log(p > kLeastProbability ? p : kLeastProbability);
    }
    std::ranges::fill(gradient, 0.0f);
    for (int begin = 0; begin < pairs.rows; begin += kBlock) {
      const int n = std::min(kBlock, pairs.rows - begin);
      pairs.Scores(begin, n, temperature_, workspace, scores);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        const size_t row = static_cast<size_t>(begin) + i;
        const float reward = labels[row] * (weights.empty() ? 1 : weights[row]);
        *loss_sum += ComputeRowLoss({scores + i * rows, rows}, row, reward, scale / temperature_,
                                    corrections);
      }
      if (!gradient.empty()) AddGradient(pairs, begin, n, scores, workspace, gradient);
    }
  }

 private:
  // Replaces the row's scores by the derivatives of the loss with respect to <q, v>.
  static double ComputeRowLoss(std::span<float> scores, size_t own, float reward, float scale,
                               const std::vector<float>& corrections) {
    float largest = -HUGE_VALF;
    for (size_t j = 0; j < scores.size(); ++j) {
      scores[j] -= corrections[j];
      largest = std::max(largest, scores[j]);
    }
    const float score = scores[own];
    float sum = 0;
    for (float& s : scores) sum += s = std::exp(s - largest);
    const float factor = reward * scale / sum;
    for (float& s : scores) s *= factor;
    scores[own] -= reward * scale;
    return static_cast<double>(reward) * (std::log(sum) + largest - score);
  }

  // dq = slopes v, dv += slopes' q.
  static void AddGradient(const PairVectors& pairs, int begin, int n, const float* slopes,
                          math::AlignedBuffer& workspace, std::span<float> gradient) {
    math::Gemm({.m = n,
                .n = pairs.size,
                .k = pairs.rows,
                .a = slopes,
                .a_row = pairs.rows,
                .b = pairs.item,
                .ldb = pairs.width,
                .c = gradient.data() + int64_t{begin} * pairs.width,
                .ldc = pairs.width},
               workspace);
    math::Gemm({.m = pairs.rows,
                .n = pairs.size,
                .k = n,
                .a = slopes,
                .a_row = 1,
                .a_col = pairs.rows,
                .b = pairs.query + int64_t{begin} * pairs.width,
                .ldb = pairs.width,
                .c = gradient.data() + pairs.size,
                .ldc = pairs.width,
                .accumulate = true},
               workspace);
  }

  const float temperature_;
};

class InBatchSoftmaxHead final : public HeadKind {
 public:
  std::string_view name() const override { return "in_batch_softmax"; }

  void Parse(const HeadOptions& options, HeadSpec* spec) const override {
    if (!options.given) return;
    options.node.CheckKeys({"temperature", "sampling_probability"});
    spec->temperature = options.node.Number("temperature", spec->temperature, 1e-6, 1e6);
    spec->sampling_probability = options.node.String("sampling_probability", "");
  }
  void Print(const HeadSpec& spec, YAML::Emitter& out) const override {
    formats::EmitNumber(out, "temperature", spec.temperature);
    if (!spec.sampling_probability.empty()) {
      formats::EmitText(out, "sampling_probability", spec.sampling_probability);
    }
  }
  absl::Status Validate(const HeadSpec& spec) const override {
    if (!(spec.temperature > 0)) {
      return absl::InvalidArgumentError(
          StrCat("head in_batch_softmax: temperature ", spec.temperature, " is not above 0"));
    }
    return CheckHeadSize(spec, "the towers' dimension", spec.vector_size, 1, "");
  }

  int logits_dimension(const HeadSpec& spec) const override {
    return 2 * spec.vector_size + (spec.sampling_probability.empty() ? 0 : 1);
  }
  int labels_dimension(const HeadSpec& /*spec*/) const override { return 1; }
  int class_count(const HeadSpec& /*spec*/) const override { return 0; }
  features::LabelSpec::Form GetLabelForm(const HeadSpec& /*spec*/, const features::LabelSpec& label,
                                         bool /*is_list*/) const override {
    return label.form;
  }
  std::string FindFault(const HeadSpec& /*spec*/, float label) const override {
    if (std::isfinite(label) && label >= 0) return "";
    return "is no reward: a reward is 0 or more, such as 1 for a click";
  }

  std::unique_ptr<Head> NewHead(const HeadSpec& spec) const override {
    return std::make_unique<InBatchSoftmaxLoss>(spec);
  }

  void Predict(const HeadSpec& spec, std::span<const float> logits,
               const std::vector<std::string>& /*class_names*/,
               PredictionFiller* filler) const override {
    const PairVectors pairs(spec, logits);
    const auto size = static_cast<size_t>(pairs.size);
    float* score = filler->Floats("score", 1).data();
    for (int row = 0; row < pairs.rows; ++row) {
      const int64_t at = int64_t{row} * pairs.width;
      *score++ = math::Dot(pairs.query + at, pairs.item + at, size);
    }
    const auto copy = [&](const char* name, const float* from) {
      float* to = filler->Floats(name, pairs.size).data();
      for (int row = 0; row < pairs.rows; ++row, from += pairs.width)
        to = std::copy_n(from, size, to);
    };
    copy("query", pairs.query);
    copy("item", pairs.item);
  }

  HeadOutputs AddNodes(const HeadSpec& spec, HeadNodes* nodes) const override {
    using formats::DataType;
    const int64_t size = spec.vector_size;
    const std::string query = nodes->Columns("query", nodes->logits(), 0, size);
    const std::string item = nodes->Columns("item", nodes->logits(), size, size);
    const std::string score =
        nodes->SumOfColumns("score", nodes->Floats("products", "Mul", {query, item}));
    HeadOutputs out;
    out.predict = {{"score", score, DataType::kFloat, {-1, 1}},
                   {"query", query, DataType::kFloat, {-1, size}},
                   {"item", item, DataType::kFloat, {-1, size}}};
    return out;
  }
};

}  // namespace

const HeadKind& GetInBatchSoftmaxHead() {
  static const InBatchSoftmaxHead kHead;
  return kHead;
}

}  // namespace muster::engine
