// A limit on the total memory of a task's processes, where cgroups allow it, and whether the limit
// ended the task. Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of
// Linux.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

// Where cgroups are found; tests use their own folders.
struct CgroupPlaces {
  std::string root = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
  std::string machine = "/proc/meminfo";
};

// The bytes that this process can still use before the machine or a limit on its cgroup runs out of
// memory; caches of files count as free. The largest number if that cannot be found out.
uint64_t GetFreeMemory(const CgroupPlaces& places = {});

// A cgroup with a memory limit, made below this process's cgroup or, if processes in it prevent
// that (systemd's scopes), beside it or further up; version 2, else version 1. When the limit is
// reached the kernel ends the whole group (version 2) or its largest process (version 1) with
// SIGKILL. One owner thread.
class MemoryLimit {
 public:
  // `name` becomes part of a folder's name: letters, digits, - and _. FAILED_PRECONDITION if limits
  // cannot be enforced here; the message says why, and the caller continues without one.
  static absl::StatusOr<std::unique_ptr<MemoryLimit>> Create(const std::string& name, int64_t bytes,
                                                             const CgroupPlaces& places = {});
  // As Close, but ignores errors.
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // Removes the group of that name left by the killed process `creator`; the group's processes must
  // have ended. Does nothing if there is none; waits for half a second at most.
  static void RemoveLeft(const std::string& name, int creator, const CgroupPlaces& places = {});

  // For ChildSpec::cgroup_procs_fd.
  int procs_fd() const { return procs_.get(); }
  const std::string& folder() const { return folder_; }

  // How many processes of the group the kernel has killed for lack of memory. Valid after they are
  // gone, until Close.
  absl::StatusOr<int64_t> OutOfMemoryKills() const;

  // Removes the group. FAILED_PRECONDITION while processes are in it.
  absl::Status Close();

 private:
  MemoryLimit(std::string folder, std::string events, Descriptor procs);

  std::string folder_;
  std::string events_;  // the file that counts
  Descriptor procs_;
};

}  // namespace muster::process
