// An exported Keras model as an Engine: a host process computes, everything else is here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/tensorflow/host_process.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/engine/tensorflow/session_config.h"
#include "muster/io/file_system.h"

namespace muster::engine::tensorflow {

struct TensorFlowOptions {
  // Threads of one operation. With 1, which is what small models want, operations run one after
  // the other on one thread.
  int threads = 1;
  Executor executor = Executor::kSingleThreaded;
  // With libtensorflow_cc.so.2. Empty: FindTensorFlow(tensorflow, environment), when the host is
  // started.
  std::string library_folder = {};
  std::string tensorflow = {};
  std::vector<std::string> environment = {};  // of the host process
  std::vector<int> groups = {};   // VariableSpec::group by variable of the export; none: all are 0
  std::string host_program = {};  // empty: muster-tensorflow beside this program
  double start_seconds = 300, run_seconds = 600;
  // The host is started with the engine; else when something is first computed. Who only wants to
  // know the variables needs no TensorFlow.
  bool start_at_once = true;
};

// variables() are what is trained and the states, by the export's names and in its order. What
// never changes (frozen weights and tables) the engine reads from the export itself; a state's
// Statistic is its new value, seeds are drawn from (seed, step, replica). Id lists are one for each
// lookup, in the export's order. Squares: see GradientSink::WantsSquares. `replica_sums` are not
// used: BatchNorm's statistics are each replica's own. A loss whose gradients or new states are not
// all finite is given as NaN, though TensorFlow made a number of it.
//
// Clipping by value: of tables each entry is cut here, an entry being the gradient of one id of the
// batch, as Keras does it; nobody behind it can, who has their sums. Gradients of dense variables
// are given as they are. (optim::ClipSpec::tables_are_cut tells the trainer.)
//
// Tables stay where they are: their rows that a batch names are copied to the host, so that a
// step costs the same whatever a table's size. The host is lost without harm: the step is done
// again by another one, with the same bytes. Images (KerasColumn::decode) come as strings of their
// bytes and are decoded by the host.
class TensorFlowEngine : public Engine {
 public:
  // The process that computes, for tests and for people; null before it was started.
  virtual const HostProcess* host() const = 0;
  virtual const KerasExport& model() const = 0;
  // The values of the model's metrics, in their order, of their states: Forward::metric_states
  // added up over batches.
  virtual absl::StatusOr<std::vector<double>> MetricValues(
      std::span<const std::vector<float>> states) = 0;
};

// `files` holds the export's folder and weights; the folder is on this machine's own file system
// too, where TensorFlow reads it. Errors are HostProcess's and the export's. The thread that calls
// it (and Step) lives as long as the engine: see process::ChildSpec::parent_death_signal.
// `files` outlives the engine.
absl::StatusOr<std::unique_ptr<TensorFlowEngine>> NewTensorFlowEngine(
    io::FileSystem& files, KerasExport model, const TensorFlowOptions& options);

}  // namespace muster::engine::tensorflow
