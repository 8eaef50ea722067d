// An exported Keras model as an Engine: a host process computes its functions, everything else
// happens in this process.
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
  // Threads for one operation. With 1, which suits small models, operations also run one after the
  // other.
  int threads = 1;
  Executor executor = Executor::kSingleThreaded;
  // The folder with libtensorflow_cc.so.2. If empty, FindTensorFlow(tensorflow, environment) is
  // called when the host is started.
  std::string library_folder = {};
  std::string tensorflow = {};
  std::vector<std::string> environment = {};  // the environment of the host process
  std::vector<int> groups = {};   // VariableSpec::group by variable of the export; empty: all are 0
  std::string host_program = {};  // "": muster-tensorflow beside this program
  double start_seconds = 300, run_seconds = 600;
  // True: the host is started with the engine. False: it is started by the first computation; a
  // caller that only needs the variables then needs no TensorFlow.
  bool start_at_once = true;
};

// variables() are the trained variables and the states, with the export's names and order. The
// engine itself reads what never changes (frozen weights and tables) from the export. A state's
// Statistic is its new value; seeds are drawn from (seed, step, replica). There is one id list for
// each lookup, in the export's order. It can give squares: see GradientSink::WantsSquares.
// `replica_sums` are not used: each replica has its own BatchNorm statistics. If the gradients or
// new states are not all finite, the loss is returned as NaN, even if TensorFlow computed a number.
//
// Clipping by value: the gradient of each entry of a table (of one id of the batch) is cut here, as
// in Keras; later that would be impossible, as only sums are left. Gradients of dense variables are
// given unclipped. (optim::ClipSpec::tables_are_cut tells the trainer.)
//
// Tables stay in this process: only the rows that a batch names are copied to the host, so that a
// step costs the same whatever the table's size. Losing the host does no harm: another host repeats
// the step, with the same bytes. Images (KerasColumn::decode) come as encoded bytes and are decoded
// by the host.
class TensorFlowEngine : public Engine {
 public:
  // The process that computes, for tests and for people; null before it is started.
  virtual const HostProcess* host() const = 0;
  virtual const KerasExport& model() const = 0;
  // Computes the values of the model's metrics, in their order, from their states, which are
  // Forward::metric_states added up over batches.
  virtual absl::StatusOr<std::vector<double>> MetricValues(
      std::span<const std::vector<float>> states) = 0;
};

// `files` holds the export's folder and weights; TensorFlow reads a copy of the functions if they
// are not on this machine's own file system. `files` must outlive the engine. The thread that calls
// this (and Step) must live as long as the engine: see process::ChildSpec::parent_death_signal.
// Errors are HostProcess's and the export's.
absl::StatusOr<std::unique_ptr<TensorFlowEngine>> NewTensorFlowEngine(
    io::FileSystem& files, KerasExport model, const TensorFlowOptions& options);

}  // namespace muster::engine::tensorflow
