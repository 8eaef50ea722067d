#include "muster/cli/jobs/job_programs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_join.h"

#include "muster/files/file_systems.h"
#include "muster/io/path_scheme.h"
#include "muster/job/pod_template.h"
#include "muster/launch/local/staging.h"

namespace muster::cli {
namespace {

bool IsProgram(const std::string& path) {
  const auto files = files::OpenFileSystems();
  const auto info = files->Stat(path);
  return info.ok() && !info->is_folder && access(path.c_str(), X_OK) == 0;
}

bool IsInPath(const std::string& name) {
  const char* const path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "" : path;
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    if (IsProgram(io::JoinPath(folders.substr(at, end - at), name))) return true;
    at = end + 1;
  }
  return false;
}

// Whether a task will be able to run `program`, a path. What an archive contains is not known
// before it is unpacked.
bool IsTaskProgram(const std::string& program, const std::string& folder,
                   const std::vector<launch::local::StagedItem>& staged) {
  if (staged.empty() || program.starts_with('/')) return IsProgram(io::JoinPath(folder, program));
  const std::string path = program.starts_with("./") ? program.substr(2) : program;
  return std::any_of(staged.begin(), staged.end(), [&](const launch::local::StagedItem& item) {
    return item.is_archive ? path.starts_with(item.name + "/")
                           : path == item.name &&
                                 (!io::PathScheme(item.source).empty() || IsProgram(item.source));
  });
}

// The working folder is checked too, so that a typo costs no restarts.
absl::Status CheckProgram(const job::Process& process, const std::string& working_directory,
                          const std::vector<launch::local::StagedItem>& staged) {
  const std::string folder =
      process.working_directory.empty() ? working_directory : process.working_directory;
  const auto info = files::OpenFileSystems()->Stat(folder);
  if (!info.ok() || !info->is_folder) {
    return absl::InvalidArgumentError(
        StrCat("the working directory ", folder, " is not a folder on this machine"));
  }
  const std::string& program = process.command[0];
  if (program.find('/') == std::string::npos) {
    if (IsInPath(program)) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("there is no program '", program, "' in the PATH"));
  }
  if (IsTaskProgram(program, folder, staged)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("there is no program '", program, "' that may be run, ",
             staged.empty() ? StrCat("as seen from ", folder) : "among what is staged"));
}

}  // namespace

void Refusals::Add(const absl::Status& status) {
  if (status.ok()) return;
  const std::string line(ToStd(status.message()));
  if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) lines_.push_back(line);
}

absl::Status Refusals::status() const {
  if (lines_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
}

absl::Status CheckPrograms(const job::JobSpec& spec, const std::string& working_directory) {
  MUSTER_ASSIGN_OR_RETURN(const auto staged, launch::local::PlanStaging(spec, working_directory));
  Refusals refusals;
  for (const auto& [type, replica] : spec.replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    const absl::Status status =
        process.ok() ? CheckProgram(*process, working_directory, staged) : process.status();
    refusals.Add(Annotate(status, job::TypeFieldName(type)));
  }
  return refusals.status();
}

}  // namespace muster::cli
