// An exported Keras model as its manifest describes it: docs/formats/keras_export.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/raw_columns.h"
#include "muster/formats/bundle.h"
#include "muster/formats/json_fields.h"
#include "muster/io/file_system.h"

namespace muster::engine::tensorflow {

using features::kAnySize;
using KerasColumn = features::RawColumnSpec;

struct KerasVariable {
  enum class Kind { kDense, kTable, kState, kSeed };
  std::string name;
  Kind kind = Kind::kDense;
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape;
  bool trainable = false;
  // Whether the variable never changes and keeps the export's value.
  bool constant() const { return !trainable && (kind == Kind::kDense || kind == Kind::kTable); }
};

// Describes ids that select rows of a table.
struct KerasLookup {
  int table = 0;               // the table's index in `variables`
  std::vector<int64_t> shape;  // the shape of a row; may have kAnySize
  // The ids are this input itself, or this label (absent in a batch without labels); both -1: the
  // ids are an output of signature `ids`.
  int input = -1, label = -1;
  bool computed() const { return input < 0 && label < 0; }
};

// An argument or a result of a signature.
struct KerasPort {
  enum class Role {
    kVariable,    // var_NNN
    kWholeTable,  // whole_NNN, only of `predict` and `evaluate`
    kInput,       // input_NAME
    kIds,         // ids_K
    kLabel,       // label_NAME
    kSampleWeight,
    kDenominator,
    kLoss,
    kDataLoss,
    kLossSum,
    kGradient,    // grad_NNN
    kRows,        // rows_NNN
    kState,       // new_NNN
    kPrediction,  // output_NAME
    kMetric,      // state of a metric, by its name; `index` counts over all metrics
    kBytes,       // the bytes of an image, for decode_NAME
    kValue,       // the result of decode_NAME, and a metric's result
    // Roles of `apply` and `learning_rate`, which also have kVariable, kGradient and kRows.
    kStep,
    kSlot,         // slot_NNN, and new_slot_NNN
    kNewVariable,  // new_var_NNN
    kLearningRate,
  };
  Role role = Role::kVariable;
  int index = 0;
  std::string tensor;  // "operation:k", in the graph
};

struct KerasSignature {
  std::vector<KerasPort> inputs, outputs;
};

struct KerasMetric {
  struct State {
    std::string name;
    std::vector<int64_t> shape;
  };
  std::string name;
  std::vector<State> states;
  std::string result;  // the name of a signature
};

// The state of an optimizer that is a function.
struct KerasSlot {
  std::string name;
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape;
};

std::string SlotName(size_t number);  // "slot_012"

struct KerasExport {
  std::string folder;
  uint32_t checksum = 0;  // CRC32C of model.json
  std::string tensorflow_version, keras_version;
  std::string model_name;
  std::vector<KerasColumn> inputs, labels;
  std::optional<KerasColumn> sample_weight;
  std::optional<KerasColumn> key;  // one value per row, without `decode`
  std::vector<KerasVariable> variables;
  std::vector<KerasLookup> lookups;
  std::vector<KerasColumn> predictions;
  // Those of these signatures that the export has: "step", "predict", "evaluate", "ids",
  // "decode_NAME" for inputs, "result_M" for metrics, "apply" and "learning_rate".
  std::map<std::string, KerasSignature, std::less<>> signatures;
  std::vector<KerasMetric> metrics;
  std::string loss;
  bool loss_is_separable = true;
  // Whether the results of `evaluate` depend on how rows are split into batches.
  bool evaluates_by_batch = false;
  formats::Json optimizer;  // a JSON object
  double clip_value = 0;    // its "clip"."clipvalue"; 0: none
  // `applies`: the optimizer is the signature "apply", with these slots. `rate_is_function`: its
  // learning rate is a signature.
  std::string optimizer_name;
  bool applies = false;
  std::vector<KerasSlot> slots;
  bool rate_is_function = false;

  const KerasSignature* Find(std::string_view signature) const;
  std::string saved_model() const { return io::JoinPath(folder, "step"); }
  std::string weights() const { return io::JoinPath(folder, "weights"); }  // the prefix of a bundle
};

// Parses model.json. Every number is checked before it is used. INVALID_ARGUMENT "WHERE: ..." names
// the field; FAILED_PRECONDITION for an export of a newer version.
absl::StatusOr<KerasExport> ParseKerasExport(std::string_view text, const std::string& where);

// Opens the export in a folder. If there is none, NOT_FOUND says how to make one.
absl::StatusOr<KerasExport> OpenKerasExport(io::FileSystem& files, const std::string& folder);

}  // namespace muster::engine::tensorflow
