// Exporters decide which evaluated models of a training become SavedModels, and how many are kept.
// exporters/exporters.h lists them by name.
//
// An export is MODEL_DIR/export/<name>/<10-digit seconds since 1970>, built under a temporary name
// and renamed. Two exports of one name never have the same second: the later one uses the next.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/train/loop/evaluations.h"

namespace muster::train {

// The environment of an exporter. It owns nothing.
struct ExportContext {
  io::FileSystem& files;
  const Clock& clock;
  std::string model_dir;
  std::string eval_folder;  // with the event files of the evaluations
  // Writes the evaluated checkpoint as a SavedModel.
  std::function<absl::Status(const std::string& folder)> export_model;
};

// One owner thread.
class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual const std::string& name() const = 0;
  // Called before the first evaluation of a run.
  virtual absl::Status Begin(const ExportContext&) { return absl::OkStatus(); }
  // Called after an evaluation with `metrics`; `is_final`: the last one of the training. Returns
  // the new export's folder, or "" if this evaluation is not exported.
  virtual absl::StatusOr<std::string> Export(const ExportContext& context, const Metrics& metrics,
                                             bool is_final) = 0;
};

// MODEL_DIR/export/NAME.
std::string GetExportFolder(const ExportContext& context, const std::string& name);

// Removes the temporary folders that killed exports have left.
absl::Status RemoveHalfExports(const ExportContext& context, const std::string& name);

// INVALID_ARGUMENT for a name that is empty, not valid for a folder, or used twice.
absl::Status ValidateExporters(const std::vector<std::shared_ptr<Exporter>>& exporters);

}  // namespace muster::train
