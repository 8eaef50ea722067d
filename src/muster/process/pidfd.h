// The pidfd system calls. glibc 2.36's <sys/pidfd.h> declares them without extern "C".
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace muster::process {

// A descriptor of the process, close-on-exec; -1 and errno.
inline int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }
// 0, or -1 and errno (ESRCH: it has been waited for).
inline int SendPidfd(int pidfd, int signal_number) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal_number, nullptr, 0));
}

}  // namespace muster::process
