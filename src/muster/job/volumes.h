// Volumes of a TFJob's pods on one machine, where nothing is mounted: the paths at which the pods
// would find them are replaced by those at which this machine has them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"

namespace muster::job {

// "NAME=PATH" each: what `--volume` says. INVALID_ARGUMENT.
absl::StatusOr<std::map<std::string, std::string>> ParseVolumes(
    const std::vector<std::string>& texts);

// `text` with each of `paths` (from, to) replaced where it stands as a path of its own or as the
// begin of one: at the begin of the text, or behind a character that no path has (a space, '=',
// ':', ',', a quote) or "file://". The longest counts.
std::string ReplacePaths(std::string_view text,
                         const std::vector<std::pair<std::string, std::string>>& paths);

// In each template's command, args, env values and workingDir the mountPath of a volume becomes the
// path that `places` has for the volume's or its claim's name; without one a hostPath's own, if
// `exists` says that this machine has it, or the mountPath stays, if that is there. The volume is
// then a hostPath mounted at that very path. Paths inside of programs and of their files are not
// seen. `notes` gets a line for each volume that was mapped, or is of a kind that is not made here.
//
// NOT_FOUND for a place whose name no volume has; FAILED_PRECONDITION for a persistentVolumeClaim
// or hostPath that is nowhere on this machine. After an error the spec is of no use.
absl::Status MapVolumes(const std::map<std::string, std::string>& places,
                        const std::function<bool(const std::string& path)>& exists, JobSpec* spec,
                        std::vector<std::string>* notes);

}  // namespace muster::job
