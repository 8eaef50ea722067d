// ModelSpec: a model file (docs/spec.md) as data: inputs, columns, model, optimizers, training
// defaults. It is parsed from YAML and printed back to YAML.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/heads/head_spec.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/features/column.h"
#include "muster/formats/data_format.h"
#include "muster/io/file_system.h"
#include "muster/metrics/metrics.h"
#include "muster/optim/clip.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

// Only a trained bias: the baseline that a model has to beat. It reads no columns.
struct BaselineSpec {
  optim::OptimizerSpec optimizer;
  friend bool operator==(const BaselineSpec&, const BaselineSpec&) = default;
};

// The wide side: a LinearModel of categorical columns (tables) and dense columns.
struct LinearSpec {
  std::vector<std::string> columns;
  optim::OptimizerSpec optimizer;
  friend bool operator==(const LinearSpec&, const LinearSpec&) = default;
};

// The deep side: its dense columns (numeric, indicator, embedding), concatenated in the order
// given.
struct DnnSpec {
  std::vector<std::string> columns;
  std::vector<int> hidden_units;
  std::string activation = "relu";
  double dropout = 0;                    // after each hidden layer
  bool batch_norm = false;               // after each hidden layer (tf.estimator's batch_norm=True)
  bool input_batch_norm = false;         // for the concatenated inputs
  bool synchronized_batch_norm = false;  // both use the rows of all replicas
  double l1 = 0, l2 = 0;                 // for hidden and logits kernels
  double embedding_l1 = 0, embedding_l2 = 0;  // for the tables of embedding columns
  optim::OptimizerSpec optimizer;
  friend bool operator==(const DnnSpec&, const DnnSpec&) = default;
};

// A factorization machine. Each column has a vector: an embedding's own or, for another dense
// column, its floats times a trained matrix; the inner products of all pairs are summed. Rendle,
// "Factorization Machines", ICDM 2010. With `dnn`, which may read the same embeddings, it is a
// DeepFM: Guo et al., IJCAI 2017.
struct FmSpec {
  std::vector<std::string> columns;
  double initial_stddev = 0.01;  // of the vectors' initial values
  optim::OptimizerSpec optimizer;
  friend bool operator==(const FmSpec&, const FmSpec&) = default;
};

// The cross layers of a dcn model over the inputs of its `dnn` part, with which they share
// optimizer, l1 and l2. Wang et al., "DCN V2", WWW 2021.
struct CrossSpec {
  int layers = 3;
  int rank = 0;           // the rank of each layer's matrix; 0: full
  bool parallel = false;  // the hidden layers read the inputs too, and not the cross layers' output
  friend bool operator==(const CrossSpec&, const CrossSpec&) = default;
};

// Two towers, each of which turns its columns into a vector; the vectors are compared by their
// inner product. `head` is in_batch_softmax. Yi et al., RecSys 2019.
struct TowersSpec {
  DnnSpec query, item;    // no logits: the last layer gives the vector
  int dimension = 0;      // of both vectors
  bool normalize = true;  // to length 1
  friend bool operator==(const TowersSpec&, const TowersSpec&) = default;
};

// Defaults of `muster train`; flags override them.
struct TrainDefaults {
  int batch_size = 128;
  int64_t epochs = 1;
  uint64_t seed = 1;
  bool shuffle = true;
  engine::Precision precision = engine::Precision::kFloat32;
  friend bool operator==(const TrainDefaults&, const TrainDefaults&) = default;
};

struct ModelSpec {
  // An exported Keras model (spec/exported_spec.h). If set, only these of the other members are
  // used: `features.schema`, `features.key`, `train` and `clip_gradients`.
  std::shared_ptr<const engine::tensorflow::KerasExport> exported;
  features::FeatureSpec features;
  std::optional<BaselineSpec> baseline;  // only for a baseline model
  std::optional<LinearSpec> linear;      // linear, wide_deep, fm and deepfm
  std::optional<FmSpec> fm;              // fm and deepfm
  std::optional<DnnSpec> dnn;            // dnn, wide_deep, deepfm and dcn
  std::optional<CrossSpec> cross;        // dcn
  std::optional<TowersSpec> towers;      // two_tower
  optim::ClipSpec clip_gradients;
  engine::HeadSpec head;
  metrics::MetricsSpec metrics;  // for evaluation
  TrainDefaults train;
  formats::DataFormat format;  // of the data; no part of the model

  // Returns "wide_deep", for example; "" for an exported model and for a model of a user's
  // function.
  std::string_view type() const;
  // The columns that the parts list, each once; without head.sampling_probability.
  std::vector<std::string> UsedColumns() const;
  // The parts that are deep networks, with the folder of their variables.
  std::vector<std::pair<std::string, const DnnSpec*>> DeepParts() const;
  // Whether a feature column reads the input.
  bool HasColumnOf(const std::string& input) const;
  // The inputs that only training and evaluation need: the label and the weight, unless columns or
  // the key use them.
  std::vector<std::string> LabelInputs() const;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

inline constexpr uint64_t kMaxSpecBytes = uint64_t{8} << 20;

// `name` is the file's name in messages ("titanic.yaml:12: columns.age: unknown key 'bondaries'
// (did you mean 'boundaries'?)"). Vocabulary files are found relative to the folder of `name`.
// `settings` change the file's values first, as YamlReader::Set does: "train.batch_size=64". Errors
// are INVALID_ARGUMENT, also for input over kMaxSpecBytes, and those of reading a vocabulary file.
absl::StatusOr<ModelSpec> ParseModelSpec(io::FileSystem& files, std::string_view yaml,
                                         const std::string& name,
                                         std::span<const std::string> settings = {});
// `path` may also be the folder of an exported Keras model; then `settings` must be empty.
absl::StatusOr<ModelSpec> LoadModelSpec(io::FileSystem& files, const std::string& path,
                                        std::span<const std::string> settings = {});
// Load the spec that SaveModelSpec has written into FOLDER; say whether there is one.
absl::StatusOr<ModelSpec> LoadSavedSpec(io::FileSystem& files, const std::string& folder);
bool HasSavedSpec(io::FileSystem& files, const std::string& folder);
// Removes the saved spec, if there is one. No other process may be saving into FOLDER.
absl::Status RemoveSavedSpec(io::FileSystem& files, const std::string& folder);

// Returns YAML that parses to an equal spec. Vocabularies that were read from a file are named, not
// printed.
std::string PrintModelSpec(const ModelSpec& spec);

// Writes FOLDER/model.yaml and, for each vocabulary from a file, FOLDER/<column>.vocabulary.txt, so
// that LoadSavedSpec(FOLDER) gives an equal spec even if the folder is moved. For an exported
// model: writes FOLDER/exported, a copy of the export, and FOLDER/data_format.yaml if the format
// has settings. No other process may be saving into FOLDER.
absl::Status SaveModelSpec(io::FileSystem& files, const ModelSpec& spec, const std::string& folder);
// Replaces, in the spec that is saved in FOLDER, what may have changed since: the format of the
// data, the key with the other inputs that no column reads, and the metrics. The specs must not
// differ otherwise (DescribeDifference). No other process may be saving into FOLDER.
absl::Status UpdateSavedSpec(io::FileSystem& files, const ModelSpec& newest,
                             const std::string& folder);

// Explains why training of a model with spec `a` cannot continue with `b`: the first difference in
// inputs, columns, model, head or optimizers. "" if only metrics, training defaults, the format of
// the data, the key and inputs that no column reads differ.
std::string DescribeDifference(const ModelSpec& a, const ModelSpec& b);

}  // namespace muster::model
