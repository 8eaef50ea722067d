// The implementation of tensorflow_engine.h. exported_engine.cc starts the host, makes the batch
// with its ids, and predicts; exported_step.cc has the step, exported_updater.cc the part of the
// optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/engine/tensorflow/feeds.h"
#include "muster/engine/tensorflow/local_copy.h"
#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/engine/updater.h"

namespace muster::engine::tensorflow {

inline constexpr auto kFloatType = static_cast<uint64_t>(formats::DataType::kFloat);
inline constexpr auto kInt32Type = static_cast<uint64_t>(formats::DataType::kInt32);

class ExportedEngine final : public TensorFlowEngine, private Updater {
 public:
  ExportedEngine(io::FileSystem& files, KerasExport model, HostSpec spec, std::string tensorflow,
                 std::span<const int> groups);
  // Starts the host if none is running.
  absl::Status Begin();

  const HostProcess* host() const override { return host_.get(); }
  const KerasExport& model() const override { return model_; }
  std::span<const VariableSpec> variables() const override { return specs_; }
  int logits_dimension() const override { return logits_dimension_; }
  std::span<const TableUse> table_uses() const override { return table_uses_; }
  std::span<const size_t> metric_sizes() const override { return metric_sizes_; }
  bool finds_ids() const override { return true; }
  absl::Status FindIds(features::FeatureBatch* batch) override;
  absl::StatusOr<StepResult> Step(std::span<const VariableView> weights,
                                  const features::FeatureBatch& batch, const StepContext& context,
                                  GradientSink& sink) override;
  absl::Status Freeze(std::span<const VariableView> weights) override;
  absl::Status Predict(std::span<const VariableView> weights, const features::FeatureBatch& batch,
                       Forward* out) override;
  absl::StatusOr<std::vector<double>> MetricValues(
      std::span<const std::vector<float>> states) override;
  void Rest() override {
    if (host_ != nullptr) host_->Rest();
  }
  Updater* updater() override { return model_.applies || model_.rate_is_function ? this : nullptr; }

 private:
  bool has_learning_rate() const override { return model_.rate_is_function; }
  absl::StatusOr<float> LearningRate(int64_t step) override;
  bool applies() const override { return model_.applies; }
  const std::string& name() const override { return model_.optimizer_name; }
  std::span<const UpdaterSlot> slots() const override { return slots_; }
  absl::Status Apply(std::span<const VariableView> weights, std::span<const std::span<char>> slots,
                     std::span<const VariableGradient> gradients, int64_t step) override;

  struct Function {
    const KerasSignature* signature = nullptr;
    uint64_t number = 0;
  };
  using Places = std::span<const host::TensorPlace>;

  absl::Status Define(const std::string& name, Function* function);
  uint64_t GetType(const KerasPort& port) const;
  absl::Status Prepare(std::span<const VariableView> weights, const features::FeatureBatch& batch,
                       bool training);
  // Returns the batch with its images decoded; the batch itself if it has no images.
  absl::StatusOr<const features::FeatureBatch*> Decoded(const features::FeatureBatch& batch);
  absl::Status Decode(size_t input, int rows, features::RawColumn* column);
  absl::Status ReadLookup(size_t lookup, const features::FeatureBatch& batch, Places results,
                          features::IdList* list) const;
  absl::StatusOr<const std::vector<features::IdList>*> GetIds(const features::FeatureBatch& batch);
  absl::StatusOr<Places> Run(const Function& function);
  absl::StatusOr<StepResult> ReadLosses(Places results) const;
  absl::Status ReadMetrics(Places results, StepResult* result) const;
  absl::Status CheckGradients(Places results) const;
  bool GradientsAreFinite(Places results) const;
  absl::Status SumRows(Places results, const GradientSink& sink);
  void GiveGradients(Places results, GradientSink& sink);
  void GiveZeros(GradientSink& sink);
  // Runs the function on the given values, which are in the order of its inputs.
  struct Given {
    host::TensorPlace place;
    const void* from = nullptr;
  };
  absl::StatusOr<Places> RunOn(const Function& function, std::span<const Given> given);
  absl::StatusOr<Given> GivenTo(const KerasPort& port, std::span<const VariableView> weights,
                                std::span<const std::span<char>> slots,
                                std::span<const VariableGradient> gradients,
                                const int64_t* step) const;
  size_t GetSpec(int variable) const;
  absl::StatusOr<StepResult> StepWithoutRows(std::span<const VariableView> weights,
                                             const StepContext& context, GradientSink& sink);
  // Returns the result with this role; null if there is none.
  const host::TensorPlace* Find(Places results, KerasPort::Role role, int index) const;
  std::span<const float> Floats(const host::TensorPlace& place) const {
    return {reinterpret_cast<const float*>(host_->segment().at(place.offset)),
            place.bytes / sizeof(float)};
  }

  io::FileSystem& files_;
  const KerasExport model_;
  const HostSpec host_spec_;
  const std::string tensorflow_;
  std::unique_ptr<LocalCopy> copy_;  // of what the host reads; null: none is needed
  std::unique_ptr<HostProcess> host_;
  std::unique_ptr<Feeds> feeds_;  // their memory is in host_'s segment
  std::vector<VariableSpec> specs_;
  std::vector<int> exported_;  // by spec: the variable's index in the export
  std::vector<TableUse> table_uses_;
  std::vector<size_t> metric_sizes_;  // empty if the export's step has no metrics
  int logits_dimension_ = 0;
  Function step_, predict_, evaluate_, ids_, apply_, learning_rate_;
  std::vector<Function> decoders_, results_;  // by input; by metric
  std::vector<features::IdList> found_ids_;
  features::FeatureBatch decoded_;
  std::vector<float> zeros_;
  std::vector<UpdaterSlot> slots_;
  host::SharedBlock update_block_;  // for the arguments of `apply` and `learning_rate`
};

}  // namespace muster::engine::tensorflow
