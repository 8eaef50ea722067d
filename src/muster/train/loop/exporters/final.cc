// The exporter `final` exports only the model of the last evaluation.
#include <utility>

#include "muster/train/loop/exporters/export_folders.h"
#include "muster/train/loop/exporters/exporters.h"

namespace muster::train {
namespace {

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

}  // namespace

std::unique_ptr<Exporter> NewFinalExporter(std::string name) {
  return std::make_unique<FinalExporter>(std::move(name));
}

const ExporterKind kFinalExporter = {
    .name = "final",
    .help = "final",
    .make = [](const ExporterOptions& options) -> absl::StatusOr<ParsedExporter> {
      return ParsedExporter{.exporter = NewFinalExporter(options.name), .by = {}};
    }};

}  // namespace muster::train
