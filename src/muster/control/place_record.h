// PlaceRecord: where a job that was submitted to another place runs. It is kept in the file
// `place.json` in the job's folder of this machine, by which every verb finds the job. See
// docs/formats/place.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"

namespace muster::control {

// The kind of a job without a record, which runs on this machine.
inline constexpr char kLocalKind[] = "local";

struct PlaceRecord {
  std::string kind = kLocalKind;  // "local", "kubernetes", "yarn"
  // What the place calls the job: "namespace/name/uid", "application_..._7".
  std::string id = {};
  std::string url = {};      // where the place is asked; contains no secret
  std::string staging = {};  // the folder with the job's files, by a path that files/ can open
  // How the place is reached from this machine, if that was said when the job was submitted: the
  // path of a kubeconfig, and its context; the folder of Hadoop's configuration.
  std::string config = {}, context = {};
  friend bool operator==(const PlaceRecord&, const PlaceRecord&) = default;
};

// INVALID_ARGUMENT "WHERE: ...", also for a later format.
absl::StatusOr<PlaceRecord> ParsePlaceRecord(std::string_view text, const std::string& where);
std::string PrintPlaceRecord(const PlaceRecord& record);

// The record in the job's folder; if there is none, a record with kLocalKind.
absl::StatusOr<PlaceRecord> ReadPlaceRecord(const JobFolder& folder);
// Writes the record completely or not at all, readable by the owner alone (0600). It is the last
// file that a submission writes: with it the folder is a job.
absl::Status WritePlaceRecord(const JobFolder& folder, const PlaceRecord& record);

}  // namespace muster::control
