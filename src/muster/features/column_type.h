// ColumnType: all that the program knows about one kind of feature column except its nodes in a
// SavedModel. Each kind is in the file of its name; column_types.cc has the table of all kinds.
#pragma once

#include <yaml-cpp/yaml.h>

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/features/column.h"
#include "muster/features/column_check.h"
#include "muster/features/dense.h"
#include "muster/features/ids.h"
#include "muster/formats/yaml_reader.h"
#include "muster/io/file_system.h"

namespace muster::features {

// Finds the files that columns name in a model file.
struct ColumnFiles {
  io::FileSystem& files;
  std::string folder;  // the model file's folder
};

// Stateless, thread-safe.
class ColumnType {
 public:
  virtual ~ColumnType() = default;
  virtual ColumnKind kind() const = 0;
  virtual std::string_view name() const = 0;  // the key of the column's input in a model file
  virtual bool is_categorical() const = 0;

  // Reads what a model file says about the column into *column, whose name and kind are already
  // set. Errors are the reader's.
  virtual void Parse(const formats::YamlReader& node, const ColumnFiles& files,
                     ColumnSpec* column) const = 0;
  // Prints the same entries.
  virtual void Print(const ColumnSpec& column, YAML::Emitter& out) const = 0;
  // INVALID_ARGUMENT, without the column's name, for errors of the column alone.
  virtual absl::Status Check(const ColumnCheck& check) const = 0;
  // Explains why the column cannot be a key of a cross; "" if it can.
  virtual std::string FindCrossFault(const ColumnSpec& column) const;

  // Like the functions of FeatureSpec with these names.
  virtual int64_t NumIds(const FeatureSpec& /*spec*/, const ColumnSpec& column) const {
    return column.buckets;
  }
  virtual const GrowthSpec* GetGrowth(const FeatureSpec& /*spec*/,
                                      const ColumnSpec& /*column*/) const {
    return nullptr;
  }
  virtual int Width(const FeatureSpec& /*spec*/, const ColumnSpec& column) const {
    return column.shape;
  }
  virtual void CollectUses(const FeatureSpec& /*spec*/, const ColumnSpec& column,
                           std::set<std::string>* /*used_columns*/,
                           std::set<std::string>* used_fields) const {
    used_fields->insert(column.input);
  }
  // Whether each row of its input has `shape` values.
  virtual bool has_fixed_length() const { return false; }

  // Make what computes the column of a valid spec. A dense column that depends on the batch alone
  // has MakeDense; a categorical one has MakeLookup if it reads one field, else MakeIds.
  virtual std::unique_ptr<DenseTransform> MakeDense(const FeatureSpec& /*spec*/,
                                                    const ColumnSpec& /*column*/) const {
    return nullptr;
  }
  virtual std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& /*schema*/,
                                               const ColumnSpec& /*column*/) const {
    return nullptr;
  }
  virtual std::unique_ptr<IdTransform> MakeIds(const FeatureSpec& spec,
                                               const ColumnSpec& column) const;
};

std::span<const ColumnType* const> ColumnTypes();
const ColumnType& GetColumnType(ColumnKind kind);

// Parts of the parsing that several kinds share. ParseScale reads "log1p", "mean", "stddev",
// "normalize" and "clip".
int ParseShape(const formats::YamlReader& node);
void ParseScale(const formats::YamlReader& node, ColumnSpec* column);
void PrintScale(const ColumnSpec& column, YAML::Emitter& out);
Pooling ParsePooling(const formats::YamlReader& node);
void PrintPooling(Pooling pooling, YAML::Emitter& out);

}  // namespace muster::features
