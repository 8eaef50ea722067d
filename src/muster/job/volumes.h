// Volumes of a TFJob's pods on one machine, where nothing is mounted: the paths inside the pods are
// replaced by the paths on this machine.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"

namespace muster::job {

// Parses the values of `--volume`, each "NAME=PATH". INVALID_ARGUMENT.
absl::StatusOr<std::map<std::string, std::string>> ParseVolumes(
    const std::vector<std::string>& texts);

// `text` with each of `paths` (from, to) replaced where it is a whole path or the beginning of one:
// at the beginning of the text, or after a character that no path has (a space, '=', ':', ',', a
// quote) or after "file://". The longest match is used.
std::string ReplacePaths(std::string_view text,
                         const std::vector<std::pair<std::string, std::string>>& paths);

// Replaces the mountPath of each volume in each template's command, args, env values and
// workingDir: by the path that `places` has for the name of the volume or of its claim; else by the
// hostPath's own path, if `exists` says that this machine has it; else the mountPath stays, if it
// exists. The volume is then a hostPath mounted at that very path. Paths inside programs and their
// files are not replaced. `notes` gets a line for each volume that was mapped or is of an
// unsupported kind.
//
// NOT_FOUND for a place whose name no volume has; FAILED_PRECONDITION lists all
// persistentVolumeClaims and hostPaths that are nowhere on this machine. After an error the spec is
// unusable.
absl::Status MapVolumes(const std::map<std::string, std::string>& places,
                        const std::function<bool(const std::string& path)>& exists, JobSpec* spec,
                        std::vector<std::string>* notes);

// Parses the values of `--path`, each "FROM=TO", FROM an absolute path inside the image.
// INVALID_ARGUMENT.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParsePaths(
    const std::vector<std::string>& texts);

// Replaces `paths` (from, to) in each template's command, args, env values and workingDir, as
// ReplacePaths() does: folders of an image become the folders on this machine.
void MapPaths(const std::vector<std::pair<std::string, std::string>>& paths, JobSpec* spec);

}  // namespace muster::job
