#include "muster/process/identity.h"

#include <unistd.h>

#include <array>
#include <climits>

#include "absl/strings/ascii.h"

#include "muster/base/strings.h"
#include "muster/process/proc.h"

namespace muster::process {
namespace {

// Returns "" if /proc does not tell: then no other machine can be taken for this one.
std::string ThisMachine() {
  const std::string boot = ReadSmallFile("/proc/sys/kernel/random/boot_id").value_or("");
  std::array<char, 64> space;
  const ssize_t n = readlink("/proc/self/ns/pid", space.data(), space.size());
  if (boot.empty() || n <= 0) return "";
  return StrCat(absl::StripAsciiWhitespace(boot), "/",
                std::string_view(space.data(), static_cast<size_t>(n)));
}

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  return gethostname(name.data(), HOST_NAME_MAX) == 0 ? name.data() : "";
}

}  // namespace

ProcessIdentity ThisProcess() {
  const auto stat = ReadStat(getpid());
  return {.machine = ThisMachine(),
          .host = HostName(),
          .pid = getpid(),
          .start_ticks = stat ? stat->start_ticks : 0};
}

Liveness GetLiveness(const ProcessIdentity& process) {
  if (process.machine.empty() || process.machine != ThisMachine()) return Liveness::kElsewhere;
  const auto stat = ReadStat(process.pid);
  const bool same = stat && stat->start_ticks == process.start_ticks && !stat->ended();
  return same ? Liveness::kAlive : Liveness::kDead;
}

}  // namespace muster::process
