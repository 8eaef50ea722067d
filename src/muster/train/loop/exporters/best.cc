// The exporter `best` exports the model of each evaluation that is better than all before it.
#include <cmath>
#include <optional>
#include <utility>

#include "muster/train/loop/evaluations.h"
#include "muster/train/loop/exporters/export_folders.h"
#include "muster/train/loop/exporters/exporters.h"

namespace muster::train {
namespace {

class BestExporter : public Exporter {
 public:
  explicit BestExporter(BestExporterOptions options) : options_(std::move(options)) {}
  const std::string& name() const override { return options_.name; }

  absl::Status Begin(const ExportContext& context) override {
    best_.reset();
    MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> exports,
                            GetExports(context.files, GetExportFolder(context, options_.name)));
    if (exports.empty()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const auto evaluations,
                            ReadEvaluations(context.files, context.eval_folder));
    for (const auto& [step, metrics] : evaluations) {
      const absl::StatusOr<bool> better = IsBetter(metrics);
      // Evaluations without the metric, from before it was measured, do not count.
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
    // Rounds to float as event files do, so that a value read back is not better than itself.
    const auto a = static_cast<float>(best), b = static_cast<float>(current);
    if (std::isnan(a) && !std::isnan(b)) return true;
    return options_.higher_is_better ? b > a : b < a;
  }

  const BestExporterOptions options_;
  std::optional<Metrics> best_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> NewBestExporter(BestExporterOptions options) {
  MUSTER_RETURN_IF_ERROR(CheckKept(options.exports_to_keep));
  return std::make_unique<BestExporter>(std::move(options));
}

const ExporterKind kBestExporter = {
    .name = "best",
    .help = "best (smallest loss), best:METRIC:higher or best:METRIC:lower",
    .has_arguments = true,
    .make = [](const ExporterOptions& given) -> absl::StatusOr<ParsedExporter> {
      ParsedExporter parsed;
      BestExporterOptions options{.name = given.name, .exports_to_keep = given.keep};
      const std::vector<std::string>& arguments = given.arguments;
      if (!arguments.empty()) {
        const std::string& direction = arguments.back();
        const bool known = direction == "higher" || direction == "lower";
        if (arguments.size() != 2 || arguments[0].empty() || !known) {
          return absl::InvalidArgumentError("write best, best:METRIC:higher or best:METRIC:lower");
        }
        options.metric = arguments[0];
        options.higher_is_better = direction == "higher";
        parsed.by = BestBy{options.metric, options.higher_is_better};
      }
      MUSTER_ASSIGN_OR_RETURN(parsed.exporter, NewBestExporter(std::move(options)));
      return parsed;
    }};

}  // namespace muster::train
