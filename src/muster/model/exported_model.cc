#include "muster/model/exported_model.h"

#include <utility>

#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/files/file_systems.h"
#include "muster/model/keras/keras_optimizer.h"
#include "muster/process/child.h"

namespace muster::model {

using engine::tensorflow::KerasExport;

absl::StatusOr<Model> BuildExported(const ModelSpec& spec, const BuildOptions& options) {
  const KerasExport& exported = *spec.exported;
  if (options.native.training == engine::Precision::kBfloat16 ||
      options.native.inference == engine::Precision::kBfloat16) {
    return absl::InvalidArgumentError(
        "--precision is for models of a model file: an exported model computes in the precision of "
        "its Keras "
        "policy (mixed_bfloat16)");
  }
  if (options.native.sub_batches_are_replicas) {
    return absl::InvalidArgumentError(
        "--replicas-per-task is for models of a model file: with an exported model each replica is "
        "a "
        "task (--workers), and --threads is for one operation");
  }
  Model model;
  model.spec = spec;
  model.files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(KerasOptimizer optimizer, ParseKerasOptimizer(exported));
  const int threads = options.native.threads;
  std::vector<std::string> environment = process::CurrentEnvironment();
  // Each replica applies the optimizer itself and must get the same bytes, but with several threads
  // TensorFlow adds up repeated rows of a table in any order unless it is told not to.
  if (optimizer.applies) environment.emplace_back("TF_DETERMINISTIC_OPS=1");
  MUSTER_ASSIGN_OR_RETURN(
      model.engine, engine::tensorflow::NewTensorFlowEngine(
                        *model.files, exported,
                        {.threads = threads,
                         .executor = threads > 1 ? engine::tensorflow::Executor::kDefault
                                                 : engine::tensorflow::Executor::kSingleThreaded,
                         .tensorflow = options.tensorflow,
                         .environment = std::move(environment),
                         .groups = optimizer.groups,
                         .start_at_once = false}));
  model.applies = optimizer.applies;
  model.rate = std::move(optimizer.rate);
  model.optimizer_specs = std::move(optimizer.specs);
  for (const optim::OptimizerSpec& each : model.optimizer_specs) {
    MUSTER_ASSIGN_OR_RETURN(auto built, optim::NewOptimizer(each));
    model.optimizers.push_back(std::move(built));
  }
  return model;
}

}  // namespace muster::model
