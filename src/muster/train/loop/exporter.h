// Exporters decide which evaluated models of a training become SavedModels, and how many are kept.
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

// What an exporter works with. It owns nothing.
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

// Exports only the last evaluation's model.
std::unique_ptr<Exporter> NewFinalExporter(std::string name = "final");

// Exports every evaluation's model; keeps the newest `exports_to_keep` (0: all).
absl::StatusOr<std::unique_ptr<Exporter>> NewLatestExporter(std::string name = "latest",
                                                            int exports_to_keep = 5);

// Exports the model of an evaluation that is better than all before it, including those of earlier
// runs, which are read from the event files. The first evaluation of a folder without an export is
// always exported.
struct BestExporterOptions {
  std::string name = "best";
  std::string metric = "loss";
  bool higher_is_better = false;  // strictly lower or higher
  // Instead of `metric` and `higher_is_better`: whether `current` is better than `best`.
  std::function<absl::StatusOr<bool>(const Metrics& best, const Metrics& current)> better = {};
  int exports_to_keep = 5;  // 0: all
};
absl::StatusOr<std::unique_ptr<Exporter>> NewBestExporter(BestExporterOptions options = {});

// Removes what a killed export has left under a temporary name.
absl::Status RemoveHalfExports(const ExportContext& context, const std::string& name);

// INVALID_ARGUMENT for a name that is empty, not valid for a folder, or used twice.
absl::Status ValidateExporters(const std::vector<std::shared_ptr<Exporter>>& exporters);

// FOLDER/<10-digit seconds>: now, or one second more than the newest in FOLDER.
absl::StatusOr<std::string> NewExportFolder(io::FileSystem& files, const Clock& clock,
                                            const std::string& folder);

}  // namespace muster::train
