#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "muster/engine/native/folded_dense.h"
#include "muster/engine/native/native_graph.h"
#include "muster/engine/step_checks.h"

namespace muster::engine::native {
namespace {

class NativeEngine final : public Engine {
 public:
  NativeEngine(NativeGraph graph, std::unique_ptr<Head> head, const EngineOptions& options);

  std::span<const VariableSpec> variables() const override { return graph_.variables; }
  int logits_dimension() const override { return graph_.logits->width; }
  absl::StatusOr<StepResult> Step(std::span<const VariableView> weights,
                                  const features::FeatureBatch& batch, const StepContext& context,
                                  GradientSink& sink) override;
  absl::Status Freeze(std::span<const VariableView> weights) override;
  absl::Status Predict(std::span<const VariableView> weights, const features::FeatureBatch& batch,
                       Forward* out) override;
  std::span<const TableUse> table_uses() const override { return table_uses_; }
  std::span<const LayerInfo> layers() const override { return graph_.infos; }
  std::vector<Activations> activations() const override;

 private:
  // An id list and the smallest table that it indexes in this step.
  struct ListUse {
    int list = 0;
    int smallest = 0;  // index of a variable
    int64_t bound = 0;
    bool distinct = false;  // a layer reads its distinct rows
  };

  void FindSmallestTables(std::span<const VariableView> weights);
  absl::Status CheckBatch(const features::FeatureBatch& batch, int least_rows) const;
  absl::Status CheckLabels(const features::FeatureBatch& batch) const;

  void Prepare(std::span<const VariableView> weights, const features::FeatureBatch& batch,
               bool training);
  void KeepActivations();
  bool MayUseFolds(std::span<const VariableView> weights,
                   const features::FeatureBatch& batch) const;
  void RunForward(Worker& worker);
  void ComputeLoss(Worker& worker, bool with_gradient);
  void Train(Worker& worker);
  void Backward(Worker& worker);
  void FindDistinctRows(Worker& worker);
  StepResult Result() const;

  NativeGraph graph_;
  std::unique_ptr<Head> head_;
  const EngineOptions options_;
  std::vector<TableUse> table_uses_;
  std::vector<ListUse> used_lists_;
  std::vector<size_t> use_of_list_;  // index in used_lists_
  ThreadCrew crew_;
  std::vector<Worker> workers_;
  std::vector<DistinctRows> distinct_;  // by id list
  native::Step step_;
  // About the last Step: its rows, and the outputs of watched nodes if a Predict has taken their
  // memory.
  int rows_ = 0;
  bool in_place_ = false;
  std::vector<std::vector<float>> kept_;
  double scale_ = 1;
  GradientSink* sink_ = nullptr;
  std::vector<Layer*> layers_;  // layers of the graph
  const FoldedGraph folded_;
  std::vector<const float*> frozen_;    // the memory of the weights that folded_ was made from
  const std::vector<Layer*>* running_;  // either layers_ or folded_.layers
  const std::function<void(int)> train_, predict_;
};

NativeEngine::NativeEngine(NativeGraph graph, std::unique_ptr<Head> head,
                           const EngineOptions& options)
    : graph_(std::move(graph)),
      head_(std::move(head)),
      options_(options),
      crew_(options.threads),
      workers_(static_cast<size_t>(options.threads)),
      folded_(options.inference == Precision::kFloat32 ? Fold(graph_) : FoldedGraph()),
      running_(&layers_),
      train_([this](int member) { Train(workers_[static_cast<size_t>(member)]); }),
      predict_([this](int member) {
        Worker& worker = workers_[static_cast<size_t>(member)];
        RunForward(worker);
        ComputeLoss(worker, false);
      }) {
  for (const auto& layer : graph_.layers) layers_.push_back(layer.get());
  std::set<int> lists;
  for (const auto& use : graph_.table_uses) {
    table_uses_.push_back({.variable = use.variable, .id_list = use.id_list});
    lists.insert(use.id_list);
  }
  distinct_.resize(lists.empty() ? 0 : static_cast<size_t>(*lists.rbegin()) + 1);
  use_of_list_.resize(distinct_.size());
  for (const int list : lists) {
    use_of_list_[static_cast<size_t>(list)] = used_lists_.size();
    used_lists_.push_back({.list = list});
  }
  for (const auto& use : graph_.table_uses) {
    used_lists_[use_of_list_[static_cast<size_t>(use.id_list)]].distinct |= use.distinct;
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].index = static_cast<int>(i);
    workers_[i].count = options.threads;
    workers_[i].crew = &crew_;
  }
}

void NativeEngine::FindSmallestTables(std::span<const VariableView> weights) {
  for (ListUse& use : used_lists_) use.bound = INT64_MAX;
  for (const auto& table : graph_.table_uses) {
    ListUse& use = used_lists_[use_of_list_[static_cast<size_t>(table.id_list)]];
    const int64_t rows = weights[static_cast<size_t>(table.variable)].rows;
    if (rows >= use.bound) continue;
    use.bound = rows;
    use.smallest = table.variable;
  }
}

absl::Status NativeEngine::CheckBatch(const features::FeatureBatch& batch, int least_rows) const {
  if (batch.rows < least_rows) return absl::InvalidArgumentError("the batch has no rows");
  const auto rows = static_cast<size_t>(batch.rows);
  for (const auto& use : graph_.dense_uses) {
    const auto at = static_cast<size_t>(use.dense);
    if (at >= batch.dense.size() || batch.dense[at].width != use.width ||
        batch.dense[at].values.size() != rows * static_cast<size_t>(use.width)) {
      return absl::InvalidArgumentError(StrCat("dense column ", use.dense, " of the batch is not ",
                                               batch.rows, " x ", use.width));
    }
  }
  for (const ListUse& use : used_lists_) {
    const std::string& table = graph_.variables[static_cast<size_t>(use.smallest)].name;
    MUSTER_RETURN_IF_ERROR(CheckIds(batch, use.list, table, use.bound));
  }
  if (!batch.weights.empty() && batch.weights.size() != rows) {
    return absl::InvalidArgumentError(
        StrCat("the batch has ", rows, " rows and ", batch.weights.size(), " weights"));
  }
  return absl::OkStatus();
}

absl::Status NativeEngine::CheckLabels(const features::FeatureBatch& batch) const {
  const auto width = static_cast<size_t>(head_->labels_dimension());
  if (batch.labels.size() != static_cast<size_t>(batch.rows) * width) {
    return absl::InvalidArgumentError(StrCat("the batch has ", batch.rows, " rows and ",
                                             batch.labels.size(), " labels",
                                             width > 1 ? StrCat(", not ", width, " a row") : ""));
  }
  return head_->CheckLabels(batch.labels);
}

void NativeEngine::Prepare(std::span<const VariableView> weights,
                           const features::FeatureBatch& batch, bool training) {
  step_.weights = weights;
  step_.batch = &batch;
  step_.training = training;
  step_.bf16 = (training ? options_.training : options_.inference) == Precision::kBfloat16;
  step_.distinct = distinct_;
  in_place_ = training;
  if (training) rows_ = batch.rows;
  for (const auto& storage : graph_.storages) {
    // A batch without rows has one row of memory, where the columns of the nodes begin.
    const auto floats =
        static_cast<size_t>(std::max(batch.rows, 1)) * static_cast<size_t>(storage->ld);
    storage->values = storage->value_memory.Reserve(floats);
    if (training) storage->gradients = storage->gradient_memory.Reserve(floats);
  }
  const auto count = static_cast<int>(workers_.size());
  for (Layer* const layer : *running_) layer->Reserve(step_, count);
  for (Worker& worker : workers_) {
    worker.begin = static_cast<int>(worker.first_of(batch.rows));
    worker.end = static_cast<int>(worker.last_of(batch.rows));
    worker.loss_sum = 0;
    worker.regularization = 0;
  }
}

void NativeEngine::RunForward(Worker& worker) {
  if (worker.count > 1 && step_.bf16) {
    for (Layer* const layer : *running_) layer->Pack(step_, worker);
    crew_.Barrier();
  }
  for (Layer* const layer : *running_) layer->Forward(step_, worker);
}

void NativeEngine::ComputeLoss(Worker& worker, bool with_gradient) {
  const features::FeatureBatch& batch = *step_.batch;
  if (batch.labels.empty()) return;
  int first = worker.begin, count = worker.rows();
  if (head_->couples_rows() && !step_.workers_are_replicas) {
    // Worker 0 computes the loss of the batch when all workers have their logits.
    if (worker.count > 1) crew_.Barrier();
    if (worker.index != 0) return;
    first = 0;
    count = batch.rows;
  }
  const auto begin = static_cast<size_t>(first), rows = static_cast<size_t>(count);
  const auto width = static_cast<size_t>(graph_.logits->width);
  const auto part = [&](const std::vector<float>& of, int values) {
    const auto n = static_cast<size_t>(values);
    return of.empty() ? std::span<const float>() : std::span(of).subspan(begin * n, rows * n);
  };
  const std::span<float> gradient =
      with_gradient ? std::span(graph_.logits->gradient(first), rows * width) : std::span<float>();
  head_->Loss({graph_.logits->value(first), rows * width},
              part(batch.labels, head_->labels_dimension()), part(batch.weights, 1),
              static_cast<float>(scale_), &worker.loss_sum, gradient);
}

StepResult NativeEngine::Result() const {
  StepResult result;
  double regularization = 0;
  for (const Worker& worker : workers_) {
    result.data_loss += worker.loss_sum * scale_;
    regularization += worker.regularization;
  }
  result.loss = result.data_loss + regularization * step_.regularization_share;
  return result;
}

void NativeEngine::FindDistinctRows(Worker& worker) {
  for (size_t i = static_cast<size_t>(worker.index); i < used_lists_.size(); i += workers_.size()) {
    if (!used_lists_[i].distinct) continue;
    const auto list = static_cast<size_t>(used_lists_[i].list);
    worker.finder.Find(step_.batch->id_lists[list].ids, used_lists_[i].bound, &distinct_[list]);
  }
}

void NativeEngine::Train(Worker& worker) {
  RunForward(worker);
  ComputeLoss(worker, true);
  crew_.Barrier();
  // If there are other replicas, this one continues: they wait for its sums.
  if (!std::isfinite(Result().loss) && step_.others == nullptr) return;
  FindDistinctRows(worker);
  Backward(worker);
}

void NativeEngine::Backward(Worker& worker) {
  for (const auto& storage : graph_.storages) {
    if (!storage->sums_gradients()) continue;
    std::fill(storage->gradients + worker.begin * storage->ld,
              storage->gradients + worker.end * storage->ld, 0.0f);
  }
  auto& layers = graph_.layers;
  if (worker.count == 1) {
    // Each gradient is handed to the sink while it is in the cache.
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      (*layer)->Backward(step_, worker);
      (*layer)->Reduce(step_, worker);
      (*layer)->Emit(step_, *sink_);
    }
    return;
  }
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    (*layer)->Backward(step_, worker);
  }
  crew_.Barrier();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    (*layer)->Reduce(step_, worker);
  }
}

absl::StatusOr<StepResult> NativeEngine::Step(std::span<const VariableView> weights,
                                              const features::FeatureBatch& batch,
                                              const StepContext& context, GradientSink& sink) {
  MUSTER_RETURN_IF_ERROR(CheckWeights(graph_.variables, weights));
  FindSmallestTables(weights);
  MUSTER_RETURN_IF_ERROR(CheckBatch(batch, context.denominator > 0 ? 0 : 1));
  MUSTER_RETURN_IF_ERROR(CheckLabels(batch));
  const double own = batch.rows;
  scale_ = head_->LossScale(context.denominator > 0 ? context.denominator : own);
  step_.context = context;
  step_.regularization_share = context.denominator > 0 ? own / context.denominator : 1;
  std::optional<OtherReplicas> others;
  if (context.replica_sums != nullptr) others.emplace(*context.replica_sums, context.denominator);
  step_.others = others ? &*others : nullptr;
  step_.workers_are_replicas = options_.sub_batches_are_replicas;
  sink_ = &sink;
  frozen_.clear();
  running_ = &layers_;
  Prepare(weights, batch, true);
  crew_.Run(train_);
  step_.others = nullptr;
  if (others) MUSTER_RETURN_IF_ERROR(others->status());
  const StepResult result = Result();
  if (!std::isfinite(result.loss)) return result;
  if (workers_.size() > 1) {
    for (auto layer = graph_.layers.rbegin(); layer != graph_.layers.rend(); ++layer) {
      (*layer)->Emit(step_, sink);
    }
  }
  return result;
}

absl::Status NativeEngine::Freeze(std::span<const VariableView> weights) {
  MUSTER_RETURN_IF_ERROR(CheckWeights(graph_.variables, weights));
  frozen_.clear();
  for (const auto& fold : folded_.folds) fold->Freeze(weights);
  for (const VariableView& view : weights) frozen_.push_back(view.data);
  return absl::OkStatus();
}

bool NativeEngine::MayUseFolds(std::span<const VariableView> weights,
                               const features::FeatureBatch& batch) const {
  return !folded_.folds.empty() &&
         std::ranges::equal(weights, frozen_, {}, [](const auto& view) { return view.data; }) &&
         std::ranges::all_of(folded_.folds, [&](const auto& fold) { return fold->Fits(batch); });
}

absl::Status NativeEngine::Predict(std::span<const VariableView> weights,
                                   const features::FeatureBatch& batch, Forward* out) {
  MUSTER_RETURN_IF_ERROR(CheckWeights(graph_.variables, weights));
  FindSmallestTables(weights);
  MUSTER_RETURN_IF_ERROR(CheckBatch(batch, 1));
  if (!batch.labels.empty()) MUSTER_RETURN_IF_ERROR(CheckLabels(batch));
  if (in_place_) KeepActivations();
  running_ = MayUseFolds(weights, batch) ? &folded_.layers : &layers_;
  Prepare(weights, batch, false);
  crew_.Run(predict_);
  const float* const logits = graph_.logits->value(0);
  out->predictions.clear();
  out->metric_states.clear();
  out->logits.assign(logits, logits + int64_t{batch.rows} * graph_.logits->width);
  out->loss_sum = 0;
  for (const Worker& worker : workers_) out->loss_sum += worker.loss_sum;
  return absl::OkStatus();
}

std::vector<Activations> NativeEngine::activations() const {
  std::vector<Activations> all;
  if (rows_ == 0) return all;
  for (size_t i = 0; i < graph_.watched.size(); ++i) {
    const auto& [name, tensor] = graph_.watched[i];
    if (in_place_) {
      all.push_back({name, tensor->value(0), rows_, tensor->width, tensor->ld()});
    } else {
      all.push_back({name, kept_[i].data(), rows_, tensor->width, tensor->width});
    }
  }
  return all;
}

void NativeEngine::KeepActivations() {
  kept_.resize(graph_.watched.size());
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Tensor& tensor = *graph_.watched[i].tensor;
    kept_[i].clear();
    for (int row = 0; row < rows_; ++row) {
      kept_[i].insert(kept_[i].end(), tensor.value(row), tensor.value(row) + tensor.width);
    }
  }
}

}  // namespace

std::unique_ptr<Engine> NewNativeEngine(NativeGraph graph, std::unique_ptr<Head> head,
                                        const EngineOptions& options) {
  return std::make_unique<NativeEngine>(std::move(graph), std::move(head), options);
}

}  // namespace muster::engine::native
