// A job's own folder on this machine, accessible by its owner alone (0700).
//
//   journal          what the coordinator knows (journal.h)
//   place.json       instead of a journal if the job runs elsewhere: where (place_record.h)
//   lock             held by the coordinator while it runs
//   supervisor       held by the supervisor that restarts the coordinator, if there is one
//   token            the job's secret, 0600
//   data_key         a secret for its tasks' connections to each other (MUSTER_KEY_FILE)
//   coordinator.log  the coordinator's messages when it has no terminal
//   agents/          marks of incarnations (incarnation.h), agents' own logs
//   logs/            NAME.log: the output of a task, of all its incarnations
//   ca.pem, server.pem, server-key.pem   with TLS: job_access.h
//   staged/          files and archives of the job; work/NAME: each task's own folder, if it has
//                    one (launch/local/staging.h)
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
  std::string place() const { return path + "/place.json"; }
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

// INVALID_ARGUMENT for an invalid job name, such as a path.
absl::Status CheckJobName(const std::string& name);

// Makes a new folder for the job. ALREADY_EXISTS if a job of that name runs, or its coordinator is
// about to be restarted, or if it was submitted to another place; a job that has ended is renamed
// to NAME.previous.
absl::StatusOr<JobFolder> MakeJobFolder(const std::string& jobs, const std::string& name);
// The folder of a job, which has a journal or a place record. NOT_FOUND lists the existing names;
// INVALID_ARGUMENT for an invalid job name.
absl::StatusOr<JobFolder> FindJobFolder(const std::string& jobs, const std::string& name);
// The names of all jobs in the folder, sorted, without those named NAME.previous. Empty if the
// folder cannot be read.
std::vector<std::string> ListJobs(const std::string& jobs);

// A file that one process keeps locked while it runs; the file contains that process's pid. The
// lock ends with this object or the process, however that ends. It belongs to the object, not to a
// thread: any thread may move or destroy it, one at a time.
class JobLock {
 public:
  // Takes the lock without waiting. ALREADY_EXISTS when another object of any process holds it;
  // NOT_FOUND when the folder does not exist; otherwise the error of the failed system call
  // (ErrnoStatus). Any thread. The file must be on a file system of this machine; it is never
  // removed.
  static absl::StatusOr<JobLock> Take(const std::string& path);
  ~JobLock();
  JobLock(JobLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  JobLock& operator=(JobLock&&) = delete;

 private:
  explicit JobLock(int fd) : fd_(fd) {}
  int fd_;
};

// The pid of the running coordinator or supervisor, if there is one. 0: it runs, but its pid is not
// known yet. These calls do not disturb the lock's holder. Any thread.
std::optional<int> LivingCoordinator(const JobFolder& folder);
std::optional<int> LivingSupervisor(const JobFolder& folder);

}  // namespace muster::control
