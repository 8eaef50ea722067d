// The result of control::DescribeJob() as text for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/formats/json_fields.h"

namespace muster::cli {

// A table of the tasks with a line about the job above it.
std::string JobTable(const formats::Json& job);

// A line about the job, under the key "", and one about each task, under its name. The lines change
// only when something happens.
std::map<std::string, std::string> StateLines(const formats::Json& job);

// Why a job failed: the first task that failed and how, its last lines, and what followed.
// "" for a job that has not failed.
std::string FailureText(const formats::Json& job);

// For each task that was stopped because it gave no sign of life: what it was doing when that last
// happened.
std::string HangText(const formats::Json& job);

// A table of jobs, one row each; `now`: wall seconds.
std::string JobList(const std::vector<formats::Json>& jobs, double now);

// "job x succeeded in 12s", "job x failed: ...".
std::string JobLine(const formats::Json& job);

}  // namespace muster::cli
