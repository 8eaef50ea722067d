// PlaceRecord: where a job that was submitted to another place runs. The file `place.json` in the
// job's folder of this machine, by which every verb finds the job. docs/formats/place.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"

namespace muster::control {

// Of jobs without a record, which run on this machine.
inline constexpr char kLocalKind[] = "local";

struct PlaceRecord {
  std::string kind = kLocalKind;  // "local", later "kubernetes", "yarn", "spark"
  std::string id = {};       // what the place calls the job: "namespace/name", "application_..._7"
  std::string url = {};      // where the place is asked; no secret is in it
  std::string staging = {};  // the folder with the job's files, by a path that files/ can open
  friend bool operator==(const PlaceRecord&, const PlaceRecord&) = default;
};

// INVALID_ARGUMENT "WHERE: ...", also for a later format.
absl::StatusOr<PlaceRecord> ParsePlaceRecord(std::string_view text, const std::string& where);
std::string PrintPlaceRecord(const PlaceRecord& record);

// The record in the job's folder; the local one if there is none.
absl::StatusOr<PlaceRecord> ReadPlaceRecord(const JobFolder& folder);
// Written completely or not at all, for the owner alone (0600). It is the last file that a
// submission writes: with it the folder is a job.
absl::Status WritePlaceRecord(const JobFolder& folder, const PlaceRecord& record);

}  // namespace muster::control
