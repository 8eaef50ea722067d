#include "muster/engine/tensorflow/tensorflow_engine.h"

#include <utility>

#include "muster/engine/tensorflow/exported_engine.h"

namespace muster::engine::tensorflow {

absl::StatusOr<std::unique_ptr<TensorFlowEngine>> NewTensorFlowEngine(
    io::FileSystem& files, KerasExport model, const TensorFlowOptions& options) {
  HostSpec spec{.program = options.host_program,
                .library_folder = options.library_folder,
                .saved_model = model.saved_model(),
                .config = SessionConfig(options.threads, options.executor),
                .environment = options.environment,
                .start_seconds = options.start_seconds,
                .run_seconds = options.run_seconds,
                .one_core = options.threads == 1};
  auto engine = std::make_unique<ExportedEngine>(files, std::move(model), std::move(spec),
                                                 options.tensorflow, options.groups);
  if (options.start_at_once) MUSTER_RETURN_IF_ERROR(engine->Begin());
  return engine;
}

}  // namespace muster::engine::tensorflow
