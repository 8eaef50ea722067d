// Feature columns as nodes of a TensorFlow graph: they compute what features::FeatureTransform
// does, with TensorFlow's own ops. Used only by ExportSavedModel.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/features/column.h"
#include "muster/formats/graph_def.h"
#include "muster/model/saved_model/saved_model_inputs.h"

namespace muster::model {

// For tables that grow, by variable: row i belongs to keys[i].
using DynamicKeys = std::map<std::string, std::span<const int64_t>>;

// Lookup tables of vocabulary columns; each exists once, however many columns use it. A vocabulary
// of strings that came from a file becomes a file in assets/; other vocabularies are constants in
// the graph.
class SavedModelTables {
 public:
  explicit SavedModelTables(formats::GraphDefBuilder* graph, DynamicKeys dynamic_tables = {})
      : graph_(*graph), dynamic_tables_(std::move(dynamic_tables)) {}
  // Returns the table from words (`key_type` kString or kInt64) to ids.
  std::string Table(const features::ColumnSpec& column, formats::DataType key_type);
  // Returns the table from the keys of a variable that grows to their rows. Sets *size to the
  // number of keys.
  std::string DynamicTable(const std::string& variable, int64_t* size);
  // Returns the variable's number of rows in the graph: one per key, and one for all other keys.
  int64_t DynamicRows(const std::string& variable) const;
  // The ops that fill the tables.
  const std::vector<std::string>& initializers() const { return initializers_; }
  // A file to be written into assets/, under a unique name.
  struct Asset {
    std::string tensor;  // the tensor that is fed the file's path
    std::string filename;
    std::string contents;
  };
  const std::vector<Asset>& assets() const { return assets_; }

 private:
  std::string InitializeFromWords(const features::ColumnSpec& column, const std::string& table,
                                  formats::DataType key_type);
  std::string InitializeFromFile(const features::ColumnSpec& column, const std::string& table);

  formats::GraphDefBuilder& graph_;
  const DynamicKeys dynamic_tables_;
  std::map<std::string, std::string> tables_;  // by column or variable
  std::vector<std::string> initializers_;
  std::vector<Asset> assets_;
};

// The ids of a categorical column: int64 [batch], or [batch, n] if `list`; a negative value is no
// id.
struct GraphIds {
  std::string tensor;
  bool list = false;
  std::string weights;  // float, the same shape; "": all are 1
  // For crosses: the ids as they are before those of absent values become -1. `present` is true
  // where there are values ("": everywhere).
  std::string crossed;
  std::string present;
  bool keys = false;  // `crossed` has the keys of a table that grows, and `tensor` is ""
};

class SavedModelFeatures {
 public:
  // The arguments must outlive this object. `spec` must be valid (features::Validate); `inputs` has
  // what its columns read. `scope` is prepended to the names of nodes.
  SavedModelFeatures(const features::FeatureSpec& spec, const GraphInputs& inputs,
                     SavedModelTables* tables, std::string scope, formats::GraphDefBuilder* graph)
      : spec_(spec), inputs_(inputs), tables_(*tables), scope_(std::move(scope)), graph_(*graph) {}

  GraphIds Ids(const features::ColumnSpec& column);
  // As Ids, but `column` may have keys: their ids are the keys' rows in the variable. *rows becomes
  // the variable's number of rows; `scope` is prepended to the names of nodes.
  GraphIds IdsInto(const features::ColumnSpec& column, const std::string& variable,
                   const std::string& scope, int64_t* rows);
  // Adds a numeric, indicator or sequence column: [batch, width] floats.
  std::string Dense(const features::ColumnSpec& column);

 private:
  // Returns "<scope>columns/<column>/<part>".
  std::string GetName(const features::ColumnSpec& column, std::string_view part) const;

  // Adds a node whose only type attribute is T = float.
  std::string Floats(const std::string& name, std::string_view op,
                     std::initializer_list<std::string> inputs);
  GraphIds MakeIds(const features::ColumnSpec& column);
  std::string Bucketized(const features::ColumnSpec& column, const GraphInput& input);
  std::string Vocabulary(const features::ColumnSpec& column, const GraphInput& input);
  std::string Identity(const features::ColumnSpec& column, const GraphInput& input);
  std::string CheckedIdentity(const features::ColumnSpec& column, const GraphInput& input);
  std::string HashBucket(const std::string& name, const GraphInput& input, int64_t buckets);
  GraphIds Cross(const features::ColumnSpec& column);
  struct Sparse {
    std::string indices, values, shape;
  };
  // Converts `tensor`, [batch] or [batch, n], without the places where `present` is false ("": true
  // everywhere).
  Sparse ToSparse(const std::string& name, std::string tensor, std::string present, bool list,
                  formats::DataType type);
  std::string AsMatrix(const std::string& name, const std::string& tensor, formats::DataType type);
  std::string Numeric(const features::ColumnSpec& column);
  std::string SequenceNumeric(const features::ColumnSpec& column);
  std::string Log1p(const features::ColumnSpec& column, const std::string& value);
  std::string Scaled(const features::ColumnSpec& column, const GraphInput& input);
  std::string Indicator(const features::ColumnSpec& column);
  std::string Weights(const features::ColumnSpec& column);
  // The input as floats, of whole numbers less `subtracted`.
  std::string AsFloat(const features::ColumnSpec& column, const GraphInput& input,
                      int64_t subtracted = 0);

  const features::FeatureSpec& spec_;
  const GraphInputs& inputs_;
  SavedModelTables& tables_;
  std::string scope_;
  formats::GraphDefBuilder& graph_;
  std::map<std::string, GraphIds> ids_;       // by column
  std::map<std::string, std::string> dense_;  // by column
};

// Pools the steps of a sequence, [batch, n, width] floats, to [batch, width]; `present`, [batch,
// n], is true where there is a step.
std::string PooledSteps(const std::string& name, const std::string& steps,
                        const std::string& present, features::Pooling pooling,
                        formats::GraphDefBuilder* graph);

}  // namespace muster::model
