#include "muster/process/network_namespace.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "muster/process/descriptor.h"

namespace muster::process {
namespace {

constexpr char kOwnNetwork[] = "/proc/self/ns/net";
// The network that was made, such as "net:[4026532281]", for the processes that are started in it.
constexpr char kIsolatedVariable[] = "MUSTER_ISOLATED";

std::string NetworkName() {
  char name[NAME_MAX];
  const ssize_t size = readlink(kOwnNetwork, name, sizeof name);
  return size > 0 ? std::string(name, static_cast<size_t>(size)) : "";
}

absl::Status WriteProc(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const bool written = file.valid() && write(file.get(), text.data(), text.size()) ==
                                           static_cast<ssize_t>(text.size());
  const int error = errno;
  return written ? absl::OkStatus() : ErrnoStatus(error, StrCat("cannot write ", path));
}

// Keeps the process's user and group as they are.
absl::Status MapToItself(uid_t user, gid_t group) {
  MUSTER_RETURN_IF_ERROR(WriteProc("/proc/self/setgroups", "deny"));
  MUSTER_RETURN_IF_ERROR(WriteProc("/proc/self/uid_map", StrCat(user, " ", user, " 1")));
  return WriteProc("/proc/self/gid_map", StrCat(group, " ", group, " 1"));
}

// A new network has the loopback interface, but it is down.
absl::Status BringLoopbackUp() {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (socket.valid() && ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0) return absl::OkStatus();
  const int error = errno;
  return ErrnoStatus(error, "cannot bring loopback up");
}

absl::Status MakeNetwork() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNET) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      const int error = errno;
      return ErrnoStatus(error, "cannot make a network namespace");
    }
    MUSTER_RETURN_IF_ERROR(MapToItself(user, group));
  }
  return BringLoopbackUp();
}

}  // namespace

absl::Status IsolateNetwork() {
  if (IsNetworkIsolated()) return absl::OkStatus();
  const absl::Status made = MakeNetwork();
  if (!made.ok()) {
    return absl::FailedPreconditionError(
        StrCat("no network of the job's own is to be had: ", ToStd(made.message()),
               ": leave --isolate out, or have this machine's kernel allow user namespaces "
               "(kernel.unprivileged_userns_clone, user.max_net_namespaces; a container's seccomp "
               "profile)"));
  }
  setenv(kIsolatedVariable, NetworkName().c_str(), /*overwrite=*/1);
  return absl::OkStatus();
}

bool IsNetworkIsolated() {
  const char* const made = std::getenv(kIsolatedVariable);
  return made != nullptr && *made != '\0' && made == NetworkName();
}

absl::Status JoinNetwork(pid_t process) {
  const std::string folder = StrCat("/proc/", process, "/ns/");
  const Descriptor network(open((folder + "net").c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor user(open((folder + "user").c_str(), O_RDONLY | O_CLOEXEC));
  if (network.valid() && setns(network.get(), CLONE_NEWNET) == 0) return absl::OkStatus();
  // The network's user namespace belongs to this user, who has the right to enter the network from
  // within it.
  if (network.valid() && user.valid() && setns(user.get(), CLONE_NEWUSER) == 0 &&
      setns(network.get(), CLONE_NEWNET) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  return ErrnoStatus(error, StrCat("cannot enter the network of process ", process));
}

}  // namespace muster::process
