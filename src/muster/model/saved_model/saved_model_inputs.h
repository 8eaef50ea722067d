// Makes the fields that a model reads tensors of a TensorFlow graph, from raw values or from
// serialized tf.Examples. Used only by ExportSavedModel.
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
  // bool, [batch]: true where the default was put; "" without Field::mark_missing
  std::string missing;
};

// A field that a model reads. If `length` > 0, every row has a list of that many values.
struct UsedField {
  const formats::Field* field = nullptr;
  int length = 0;
};

struct GraphInputs {
  std::map<std::string, GraphInput> by_field;
  std::vector<formats::SignatureTensor> signature;  // what a caller must feed
};

// Returns the fields that the columns of all parts read, in the schema's order.
std::vector<UsedField> GetFields(const ModelSpec& spec);

// Returns `tensor`, with a check that makes a request fail with `message` where `condition` (bool,
// with `rank` dimensions) is false.
std::string AddAssert(const std::string& name, const std::string& condition, int rank,
                      const std::string& message, const std::string& tensor, formats::DataType type,
                      formats::GraphDefBuilder* graph);

// In both functions, values that count as missing (formats/missing.h) become the default or, in a
// list, are not present; without a default the request fails.

// Adds one placeholder "inputs/<field>" per field: scalars [batch]; lists [batch, n], padded with
// "", -1 or NaN, or [batch, length].
GraphInputs AddRawInputs(const std::vector<UsedField>& fields, formats::GraphDefBuilder* graph);

// Adds one placeholder "input_example_tensor", [batch] serialized tf.Examples, and ParseExampleV2.
// Each example must have all fields without a default, except that a list of any length may be
// absent. If there are no fields, nothing is parsed.
GraphInputs AddExampleInputs(const std::vector<UsedField>& fields, formats::GraphDefBuilder* graph);

}  // namespace muster::model
