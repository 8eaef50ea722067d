// Where a job lives on this machine: a folder of its own, for its owner alone (0700).
//
//   journal          what the coordinator knows (journal.h)
//   lock             held by the coordinator while it lives
//   supervisor       held by what starts the coordinator again when it dies, where there is such
//   token            the job's secret, 0600
//   data_key         the same for its tasks' connections to each other (MUSTER_KEY_FILE)
//   coordinator.log  what the coordinator says when it has no terminal
//   agents/          marks of incarnations (incarnation.h), agents' own logs
//   logs/            NAME.log: what a task wrote, all its incarnations
//   ca.pem, server.pem, server-key.pem   with TLS: job_access.h
//   staged/          files and archives of the job; work/NAME: each task's own folder, where it has
//                    them (launch/local/staging.h)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"

namespace muster::control {

struct JobFolder {
  std::string path = {};
  std::string journal() const { return path + "/journal"; }
  std::string lock() const { return path + "/lock"; }
  std::string supervisor_lock() const { return path + "/supervisor"; }
  std::string token() const { return path + "/token"; }
  std::string data_key() const { return path + "/data_key"; }
  std::string coordinator_log() const { return path + "/coordinator.log"; }
  std::string staged() const { return path + "/staged"; }
  std::string work() const { return path + "/work"; }
  std::string agent_log(job::TaskId task) const;
  std::string task_log(job::TaskId task) const;
};

// $MUSTER_HOME/jobs, else $XDG_STATE_HOME/muster/jobs, else ~/.local/state/muster/jobs.
// FAILED_PRECONDITION when none of the three is set.
absl::StatusOr<std::string> JobsFolder();

// INVALID_ARGUMENT for what can be no job's name, such as a path.
absl::Status CheckJobName(const std::string& name);

// A new folder for the job. ALREADY_EXISTS when a job of that name runs, or its coordinator is
// about to be started again; one that has ended gives way, as NAME.previous.
absl::StatusOr<JobFolder> MakeJobFolder(const std::string& jobs, const std::string& name);
// NOT_FOUND with the names that there are; INVALID_ARGUMENT for what can be no job's name.
absl::StatusOr<JobFolder> FindJobFolder(const std::string& jobs, const std::string& name);
std::vector<std::string> ListJobs(const std::string& jobs);

// A file that one process holds while it lives; it holds that process's pid.
class JobLock {
 public:
  // ALREADY_EXISTS when another process holds it.
  static absl::StatusOr<JobLock> Take(const std::string& path);
  ~JobLock();
  JobLock(JobLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  JobLock& operator=(JobLock&&) = delete;

 private:
  explicit JobLock(int fd) : fd_(fd) {}
  int fd_;
};

// The pid of the coordinator that lives, if one does; of the supervisor. 0: it lives, its pid is
// not known yet. To look disturbs nobody.
std::optional<int> LivingCoordinator(const JobFolder& folder);
std::optional<int> LivingSupervisor(const JobFolder& folder);

}  // namespace muster::control
