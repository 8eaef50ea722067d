#include "muster/process/core_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"

namespace muster::process {
namespace {

cpu_set_t GetSet(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  return set;
}

// Opens a socket with the abstract name that stands for the core, which only one process can have;
// invalid if another process has it. The system takes the name back when its holder ends.
Descriptor GetName(int core) {
  const std::string name = StrCat("muster-core-", core);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const size_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.valid() && bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                             static_cast<socklen_t>(size)) != 0) {
    socket.Reset();
  }
  return socket;
}

}  // namespace

std::optional<CoreClaim> CoreClaim::Take() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
    return std::nullopt;
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &allowed)) cores.push_back(core);
  }
  const auto here = std::find(cores.begin(), cores.end(), sched_getcpu());
  if (here != cores.end()) std::rotate(cores.begin(), here, here + 1);
  for (const int core : cores) {
    if (Descriptor name = GetName(core); name.valid()) {
      return CoreClaim(core, allowed, std::move(name));
    }
  }
  return std::nullopt;
}

bool CoreClaim::Bind(pid_t process) const {
  const cpu_set_t set = GetSet(core_);
  return sched_setaffinity(process, sizeof set, &set) == 0;
}

CoreClaim::Stay::Stay(const CoreClaim& claim)
    : claim_(claim), thread_(gettid()), bound_(claim.Bind(thread_)) {}

CoreClaim::Stay::~Stay() {
  if (bound_) sched_setaffinity(thread_, sizeof claim_.before_, &claim_.before_);
}

}  // namespace muster::process
