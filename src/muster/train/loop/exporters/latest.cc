// The exporter `latest` exports the model of every evaluation, and keeps the newest ones.
#include <utility>

#include "muster/train/loop/exporters/export_folders.h"
#include "muster/train/loop/exporters/exporters.h"

namespace muster::train {
namespace {

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

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> NewLatestExporter(std::string name, int exports_to_keep) {
  MUSTER_RETURN_IF_ERROR(CheckKept(exports_to_keep));
  return std::make_unique<LatestExporter>(std::move(name), exports_to_keep);
}

const ExporterKind kLatestExporter = {
    .name = "latest",
    .help = "latest (of each evaluation)",
    .make = [](const ExporterOptions& options) -> absl::StatusOr<ParsedExporter> {
      MUSTER_ASSIGN_OR_RETURN(auto exporter, NewLatestExporter(options.name, options.keep));
      return ParsedExporter{.exporter = std::move(exporter), .by = {}};
    }};

}  // namespace muster::train
