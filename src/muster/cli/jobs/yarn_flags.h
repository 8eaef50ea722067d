// Flags of a job that is submitted to YARN, and jobs that are there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "muster/cli/jobs/job_request.h"
#include "muster/cli/jobs/where_flags.h"

namespace muster::cli {

// As JobFlags::place.
inline constexpr char kYarnPlace[] = "YARN";

struct YarnFlags {
  std::string queue, placement, keytab;
  std::vector<std::string> node_labels, images;  // VALUE or ROLE=VALUE
  std::string gang_timeout = "5m";               // a duration
  std::string memory = "2Gi";                    // a quantity, as in a TFJob
  double cores = 1;
  // Not flags: launch::yarn::SubmitOptions::folders.
  std::vector<std::pair<std::string, std::string>> folders;
  std::vector<const CLI::Option*> options = {};  // all of these flags
};

// Adds --queue, --node-label, --placement, --image, --keytab, --memory, --cores and
// --gang-timeout, which need --on.
void AddYarnFlags(CLI::App& verb, YarnFlags* flags);
// Throws CLI::ValidationError for one of these flags that was given, but for those of `used`:
// elsewhere than on YARN it would have no effect.
void RefuseYarnFlags(const YarnFlags& flags, const std::vector<std::string>& used = {});
// The names of these flags, each of which takes a value.
std::vector<std::string> GetYarnFlagNames();

// INVALID_ARGUMENT for the value of a flag that is a path of this machine alone.
absl::Status CheckYarnPath(const char* flag, const std::string& path);

// Also fails if a pattern on HDFS matches no file, so that no containers are waited for. What lies
// on the nodes alone is not looked for.
absl::Status CheckYarnData(io::FileSystem& files, const char* flag,
                           const std::vector<std::string>& patterns);

// Submits the job, and writes its record on this machine, by which every verb finds it by its name
// alone.
absl::Status SubmitToYarn(const JobRequest& request, const YarnFlags& flags);

// Submits the job, and shows what its tasks write until it has ended, or, detached, prints its
// name.
absl::Status SubmitToYarnAndFollow(const JobRequest& request, const YarnFlags& flags, bool detach);

// Opens the job of a record of kYarnKind, by the configuration that it was submitted with.
OpenedPlace OpenYarn(const control::JobFolder& folder, const control::PlaceRecord& record);
// Opens a job by its name, or by the id of its application, whichever machine has submitted it.
// This machine gets a record of it.
OpenedPlace OpenOnYarn(const std::string& name);
// Descriptions of the user's jobs that the ResourceManager knows.
absl::StatusOr<std::vector<formats::Json>> DescribeAllOnYarn();

}  // namespace muster::cli
