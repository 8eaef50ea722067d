// All exporters. Each one is in the file of its name; their table, from which `--exporter` makes
// one, is in exporters.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/loop/exporter.h"
#include "muster/train/loop/specs.h"

namespace muster::train {

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

// The options of an exporter: "KIND" or "KIND:ARGUMENT:...", either of them also after "NAME=".
struct ExporterOptions {
  std::string name;  // of its folder; by default the name of the kind
  std::vector<std::string> arguments;
  int keep = 5;  // exports; 0: all
};

struct ParsedExporter {
  std::unique_ptr<Exporter> exporter;
  std::optional<BestBy> by;  // the metric by which it chooses, if one was given
};

struct ExporterKind {
  std::string_view name;
  std::string_view help;  // how to request it, and what it exports
  bool has_arguments = false;
  // INVALID_ARGUMENT says what to write instead.
  absl::StatusOr<ParsedExporter> (*make)(const ExporterOptions& options);
};

extern const ExporterKind kFinalExporter, kLatestExporter, kBestExporter;

// Parses an exporter. INVALID_ARGUMENT "--exporter 'TEXT': ..." for any other text.
absl::StatusOr<ParsedExporter> ParseExporter(const std::string& text, int keep);

// Returns "final, latest (of each evaluation), best ...", for --help.
std::string DescribeExporters();

}  // namespace muster::train
