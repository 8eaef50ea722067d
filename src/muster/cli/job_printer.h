// What control::DescribeJob() says, as text for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/formats/json_fields.h"

namespace muster::cli {

// A table of the tasks with a line about the job above it.
std::string JobTable(const formats::Json& job);

// A line about the job, by "", and one about each task, by its name; they change only when
// something happens.
std::map<std::string, std::string> StateLines(const formats::Json& job);

// Why a job failed: the first task that failed and how, its last lines, what followed from it.
// "" for a job that has not failed.
std::string FailureText(const formats::Json& job);

// Of each task that was stopped for want of a sign of life, the last time: what it did then.
std::string HangText(const formats::Json& job);

// "job x succeeded in 12s", "job x failed: ...".
std::string JobLine(const formats::Json& job);

}  // namespace muster::cli
