// Variables of a SavedModel: their nodes, and the saver that restores them. Used only by
// ExportSavedModel.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/formats/graph_def.h"

namespace muster::model {

class SavedModelVariables {
 public:
  // Adds VarHandleOp, initializer and ReadVariableOp for each variable. Both arguments must outlive
  // this object.
  SavedModelVariables(std::span<const engine::VariableSpec> variables,
                      formats::GraphDefBuilder* graph);

  // Return the resource of a variable, to gather from, and its value, to compute with. The variable
  // must exist with this shape; if not, the first such error is in status(), and the returned name
  // is "".
  std::string Handle(const std::string& name, const formats::GraphShape& shape);
  std::string Value(const std::string& name, const formats::GraphShape& shape);
  const absl::Status& status() const { return status_; }

  // Adds save/...: SaveV2 and RestoreV2 of all variables. Sets the saver and variables of *meta.
  void AddSaver(formats::MetaGraph* meta);

 private:
  int Find(const std::string& name, const formats::GraphShape& shape);

  std::span<const engine::VariableSpec> variables_;
  formats::GraphDefBuilder& graph_;
  std::map<std::string, int> places_;
  std::vector<formats::GraphVariable> nodes_;
  absl::Status status_;
};

}  // namespace muster::model
