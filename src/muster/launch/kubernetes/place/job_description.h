// A TFJob object as `muster status` shows a job: the result of control::DescribeJob() over the
// state that the operator has written, with what is known of the job's pods. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/launch/kubernetes/pod_record.h"

namespace muster::launch::kubernetes {

// What a place knows of a task's pod.
struct PodInfo {
  std::string name = {};
  std::string container = {};  // the one whose log counts
  std::string node = {};       // "": it has none yet
  PodRecord record = {};
};

// The pods that belong to the job, by task; the newest of each. Pods of an older job of the same
// name are left out.
std::map<job::TaskId, PodInfo> ReadPods(const Json& job, const std::vector<Json>& pods);

// Also for an object that the operator refuses, that it has not seen yet, or whose status another
// controller writes: "coordinator" then says so. `now` is in wall seconds.
//
// Beside the members of control::DescribeJob(): "namespace"; "created", when the object was made,
// in wall seconds; "notes", unless the job has ended: what its settings do not do that they seem
// to; of a task "place" (its node) and "problem", which says why it does not start and what to do.
Json DescribeTfJob(const Json& job, const std::map<job::TaskId, PodInfo>& pods, double now);

// The tasks whose pods have not ended.
std::vector<std::string> ListRunningTasks(const std::map<job::TaskId, PodInfo>& pods);

// Adds to the "notes" of a job that has ended which tasks' pods cleanPodPolicy None has left
// running, and what ends them.
void DescribeRest(const std::map<job::TaskId, PodInfo>& pods, Json* described);

// For a job that no operator attends to, as `silence` says: the tasks that the job's status has as
// running, and whose pods are gone or have ended since, have a "problem" that says so. `pods`:
// nullopt if nobody could see them.
void DescribeSilence(const std::string& silence,
                     const std::optional<std::map<job::TaskId, PodInfo>>& pods, Json* described);

// Why a task of the job that has ended has no pod any more, and what the job's status keeps of its
// output: "...: the job has failed: ...; its last line was 'a'". nullopt if it has not ended.
// `described`: DescribeTfJob() of the job.
std::optional<std::string> DescribeLostPod(const Json& job, const Json& described,
                                           const std::string& task);

// The problem with what a person can do about it, in one line.
std::string AddAdvice(const std::string& problem);

}  // namespace muster::launch::kubernetes
