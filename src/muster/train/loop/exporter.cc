#include "muster/train/loop/exporter.h"

#include <set>

#include "absl/strings/str_join.h"

namespace muster::train {

std::string GetExportFolder(const ExportContext& context, const std::string& name) {
  return io::JoinPath(io::JoinPath(context.model_dir, "export"), name);
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
          StrCat("exporters must have unique names, '", name, "' appears twice", known));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::train
