// The fields that a model reads as tensors of a TensorFlow graph, from raw values or from
// serialized tf.Examples. Used by ExportSavedModel only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/formats/graph_def.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

struct GraphInput {
  const formats::Field* field = nullptr;
  std::string tensor;   // int64, float or string; [batch], or for a list [batch, n], padded
  std::string present;  // bool, the same shape: a scalar is not "" or -1, a list has a value here;
                        // "" for floats that are no lists
  std::string missing;  // bool, [batch]: the default stands here; "" without Field::mark_missing
};

// A field that a model reads; `length` > 0: a list of that many values in every row.
struct UsedField {
  const formats::Field* field = nullptr;
  int length = 0;
};

struct GraphInputs {
  std::map<std::string, GraphInput> by_field;
  std::vector<formats::SignatureTensor> signature;  // what a caller feeds
};

// Fields that the columns of all parts read, in the schema's order.
std::vector<UsedField> GetFields(const ModelSpec& spec);

// Returns `tensor`, but a request fails with `message` where `condition` (bool, with `rank`
// dimensions) is false.
std::string AddAssert(const std::string& name, const std::string& condition, int rank,
                      const std::string& message, const std::string& tensor, formats::DataType type,
                      formats::GraphDefBuilder* graph);

// Values that count as missing (formats/missing.h) become the default or, in a list, are not
// present; without a default the request fails.

// One placeholder "inputs/<field>" per field: scalars [batch], lists [batch, n] padded with "", -1
// or NaN, or [batch, length].
GraphInputs AddRawInputs(const std::vector<UsedField>& fields, formats::GraphDefBuilder* graph);

// One placeholder "input_example_tensor", [batch] serialized tf.Examples, and ParseExampleV2: a
// field without a default must be in each example, a list of any length may be absent. Without
// fields nothing is parsed.
GraphInputs AddExampleInputs(const std::vector<UsedField>& fields, formats::GraphDefBuilder* graph);

}  // namespace muster::model
