// The place of this process in a training of several replicas, from its environment: TF_CONFIG says
// who is in, MUSTER_KEY_FILE has the key that they show each other, MUSTER_JOB and
// MUSTER_INCARNATION are set by muster's own launchers.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"
#include "muster/train/replicas.h"
#include "muster/train/run_config.h"

namespace muster::cli {

// Fills in the place of this process: TF_CONFIG's, the job and the incarnation.
absl::Status ReadTaskEnvironment(const Clock& clock, train::RunConfig* config);

// Null where TF_CONFIG names no other replica. FAILED_PRECONDITION without a key; UNIMPLEMENTED for
// parameter servers and evaluators, which are to come. `stop` gives waits for others up; it and
// `clock` must outlive it.
absl::StatusOr<std::unique_ptr<train::Replicas>> ReplicasOf(const train::RunConfig& config,
                                                            const std::string& agreement,
                                                            const Clock& clock,
                                                            const std::atomic<bool>& stop);

// The part of the data that this replica reads: whole files where there are enough of them for
// all, else an equal share of the records.
absl::StatusOr<data::Shard> ShardOf(const train::RunConfig& config,
                                    const std::vector<std::string>& patterns,
                                    io::FileSystem& files);

}  // namespace muster::cli
