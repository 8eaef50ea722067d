// What the doctor finds of what jobs on clusters and data from elsewhere need.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/cli/doctor.h"

namespace muster::cli {

// Parquet, Kafka, Hadoop, YARN and Kubernetes. Makes no connection.
std::vector<Finding> ExamineClusters();

// Returns the first line that `argv` prints; nullopt if it does not run.
std::optional<std::string> AskProgram(const std::vector<std::string>& argv);

}  // namespace muster::cli
