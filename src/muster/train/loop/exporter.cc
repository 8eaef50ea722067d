#include "muster/train/loop/exporter.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace muster::train {
namespace {

constexpr size_t kDigits = 10;

std::string GetExportFolder(const ExportContext& context, const std::string& name) {
  return io::JoinPath(io::JoinPath(context.model_dir, "export"), name);
}

// Seconds of the exports in a folder, oldest first.
absl::StatusOr<std::vector<int64_t>> Exports(io::FileSystem& files, const std::string& folder) {
  std::vector<int64_t> exports;
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (absl::IsNotFound(names.status())) return exports;
  MUSTER_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    int64_t seconds = 0;
    const bool digits = name.find_first_not_of("0123456789") == std::string::npos;
    if (name.size() == kDigits && digits && absl::SimpleAtoi(name, &seconds)) {
      exports.push_back(seconds);
    }
  }
  return exports;  // List() sorts, and all have ten digits
}

std::string FolderName(int64_t seconds) { return absl::StrFormat("%010d", seconds); }

absl::StatusOr<std::string> MakeExport(const ExportContext& context, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(std::string folder, NewExportFolder(context.files, context.clock,
                                                              GetExportFolder(context, name)));
  MUSTER_RETURN_IF_ERROR(Annotate(context.export_model(folder), StrCat("exporter '", name, "'")));
  return folder;
}

absl::Status RemoveOldExports(const ExportContext& context, const std::string& name, int keep) {
  if (keep <= 0) return absl::OkStatus();
  const std::string folder = GetExportFolder(context, name);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> exports, Exports(context.files, folder));
  for (size_t i = 0; i + keep < exports.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(context.files.RemoveAll(io::JoinPath(folder, FolderName(exports[i]))));
  }
  return absl::OkStatus();
}

absl::Status CheckKept(int exports_to_keep) {
  if (exports_to_keep >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("exports_to_keep, if provided, must be a positive number, given: ", exports_to_keep));
}

class FinalExporter : public Exporter {
 public:
  explicit FinalExporter(std::string name) : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  absl::StatusOr<std::string> Export(const ExportContext& context, const Metrics&,
                                     bool is_final) override {
    if (!is_final) return std::string();
    return MakeExport(context, name_);
  }

 private:
  const std::string name_;
};

class LatestExporter : public Exporter {
 public:
  LatestExporter(std::string name, int keep) : name_(std::move(name)), keep_(keep) {}
  const std::string& name() const override { return name_; }
  absl::StatusOr<std::string> Export(const ExportContext& context, const Metrics&, bool) override {
    MUSTER_ASSIGN_OR_RETURN(std::string folder, MakeExport(context, name_));
    MUSTER_RETURN_IF_ERROR(RemoveOldExports(context, name_, keep_));
    return folder;
  }

 private:
  const std::string name_;
  const int keep_;
};

class BestExporter : public Exporter {
 public:
  explicit BestExporter(BestExporterOptions options) : options_(std::move(options)) {}
  const std::string& name() const override { return options_.name; }

  absl::Status Begin(const ExportContext& context) override {
    best_.reset();
    MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> exports,
                            Exports(context.files, GetExportFolder(context, options_.name)));
    if (exports.empty()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const auto evaluations,
                            ReadEvaluations(context.files, context.eval_folder));
    for (const auto& [step, metrics] : evaluations) {
      const absl::StatusOr<bool> better = IsBetter(metrics);
      // An evaluation of a time when the metric was not measured says nothing.
      if (better.ok() && *better) best_ = metrics;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Export(const ExportContext& context, const Metrics& metrics,
                                     bool) override {
    MUSTER_ASSIGN_OR_RETURN(const bool better, IsBetter(metrics));
    if (!better) return std::string();
    MUSTER_ASSIGN_OR_RETURN(std::string folder, MakeExport(context, options_.name));
    best_ = metrics;
    MUSTER_RETURN_IF_ERROR(RemoveOldExports(context, options_.name, options_.exports_to_keep));
    return folder;
  }

 private:
  absl::StatusOr<bool> IsBetter(const Metrics& metrics) const {
    const std::string user = StrCat("exporter '", options_.name, "'");
    if (options_.better) {
      if (!best_) return true;
      return options_.better(*best_, metrics);
    }
    MUSTER_ASSIGN_OR_RETURN(const double current, FindMetric(metrics, options_.metric, user));
    if (!best_) return true;
    MUSTER_ASSIGN_OR_RETURN(const double best, FindMetric(*best_, options_.metric, user));
    // As event files hold them, so that a value read back is not better than itself.
    const auto a = static_cast<float>(best), b = static_cast<float>(current);
    if (std::isnan(a) && !std::isnan(b)) return true;
    return options_.higher_is_better ? b > a : b < a;
  }

  const BestExporterOptions options_;
  std::optional<Metrics> best_;
};

}  // namespace

std::unique_ptr<Exporter> NewFinalExporter(std::string name) {
  return std::make_unique<FinalExporter>(std::move(name));
}

absl::StatusOr<std::unique_ptr<Exporter>> NewLatestExporter(std::string name, int exports_to_keep) {
  MUSTER_RETURN_IF_ERROR(CheckKept(exports_to_keep));
  return std::make_unique<LatestExporter>(std::move(name), exports_to_keep);
}

absl::StatusOr<std::unique_ptr<Exporter>> NewBestExporter(BestExporterOptions options) {
  MUSTER_RETURN_IF_ERROR(CheckKept(options.exports_to_keep));
  return std::make_unique<BestExporter>(std::move(options));
}

absl::Status RemoveHalfExports(const ExportContext& context, const std::string& name) {
  const std::string folder = GetExportFolder(context, name);
  const absl::StatusOr<std::vector<std::string>> names = context.files.List(folder);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(names.status());
  for (const std::string& each : *names) {
    if (!io::IsTemporaryName(each)) continue;
    MUSTER_RETURN_IF_ERROR(context.files.RemoveAll(io::JoinPath(folder, each)));
  }
  return absl::OkStatus();
}

absl::Status ValidateExporters(const std::vector<std::shared_ptr<Exporter>>& exporters) {
  std::vector<std::string> all;
  for (const auto& exporter : exporters) all.push_back(exporter->name());
  const std::string known = StrCat("; all exporter names: ", absl::StrJoin(all, ", "));
  std::set<std::string> seen;
  for (const std::string& name : all) {
    if (name.empty()) {
      return absl::InvalidArgumentError(StrCat("an exporter cannot have an empty name", known));
    }
    if (name.find('/') != std::string::npos || name.starts_with('.')) {
      return absl::InvalidArgumentError(
          StrCat("exporter '", name, "': the name must be that of a folder, without '/'"));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(
          StrCat("exporters must have unique names, '", name, "' is there twice", known));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> NewExportFolder(io::FileSystem& files, const Clock& clock,
                                            const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(folder));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> exports, Exports(files, folder));
  auto seconds = static_cast<int64_t>(clock.WallSeconds());
  if (!exports.empty()) seconds = std::max(seconds, exports.back() + 1);
  return io::JoinPath(folder, FolderName(seconds));
}

}  // namespace muster::train
