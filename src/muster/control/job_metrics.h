// A job's numbers in Prometheus' text format (version 0.0.4), for GET /metrics.
#pragma once

#include <string>

#include "muster/formats/json_fields.h"

namespace muster::control {

inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

// `job`: the result of Coordinator::Describe(). The text has these families, each with the label
// `job`:
//
//   muster_job_phase{phase}              1 for the job's phase
//   muster_tasks{type,phase}             tasks in each phase that has any
//   muster_task_restarts_total{task}     starts after the first
//   muster_task_step{task}               the last step that the task's step file named
//   muster_task_records_total{task,kind} counts of the step file, such as kind="trained"
//   muster_task_cpu_seconds_total{task}  of all processes of the running incarnation
//   muster_task_memory_bytes{task}       of the same processes: proportional set size
//   muster_failures_total                failures that the job's record keeps
std::string JobMetrics(const formats::Json& job);

}  // namespace muster::control
