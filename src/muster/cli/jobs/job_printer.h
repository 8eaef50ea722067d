// Prints the result of control::DescribeJob() as text for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/formats/json_fields.h"

namespace muster::cli {

// Returns a table of the tasks, after a line about the job.
std::string JobTable(const formats::Json& job);

// Returns a line about the job under the key "", and one about each task under its name. A line
// changes only if something has happened.
std::map<std::string, std::string> StateLines(const formats::Json& job);

// Explains why a job failed: the first task that failed and, unless the job's message says it, how;
// its last lines, and what followed.
// "" for a job that has not failed.
std::string FailureText(const formats::Json& job);

// For each task that was stopped because it gave no sign of life: what it was doing when that last
// happened.
std::string HangText(const formats::Json& job);

// Returns a table of jobs, one row each; `now` is in wall seconds. What is said of a job is cut
// where the table would be wider than `columns`; 0: nothing is cut.
std::string JobList(const std::vector<formats::Json>& jobs, double now, size_t columns);

// Returns "job x succeeded in 12s" or "job x failed: ...".
std::string JobLine(const formats::Json& job);

}  // namespace muster::cli
