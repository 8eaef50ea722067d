#include "muster/process/cpu_sets.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

namespace muster::process {
namespace {

constexpr int kMaxCpus = 1 << 16;

size_t CoresWanted(double limit, size_t available) {
  // Kubernetes' "1000m" may arrive as 1.0000000000000002, which must not count as another core.
  const double cores = std::ceil(limit - 1e-9);
  return static_cast<size_t>(std::clamp(cores, 1.0, static_cast<double>(available)));
}

}  // namespace

absl::StatusOr<std::vector<int>> AvailableCpus() {
  int error = EINVAL;
  // The kernel refuses a set that is smaller than its own, and does not tell the size of its own.
  for (int size = CPU_SETSIZE; size <= kMaxCpus && error == EINVAL; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    const size_t bytes = CPU_ALLOC_SIZE(size);
    error = sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
    std::vector<int> cpus;
    for (int cpu = 0; error == 0 && cpu < size; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (error == 0) return cpus;
  }
  return ErrnoStatus(error, "ask which cores this process may run on");
}

absl::StatusOr<std::vector<std::vector<int>>> DealCpus(const std::vector<int>& available,
                                                       const std::vector<double>& limits) {
  std::vector<std::vector<int>> dealt(limits.size());
  size_t wanted = 0;
  for (double limit : limits) {
    if (!(limit >= 0) || std::isinf(limit)) {
      return absl::InvalidArgumentError(
          StrCat("deal out cores: a limit of ", limit, " cores: give a number from 0 up"));
    }
    if (limit > 0) wanted += CoresWanted(limit, available.size());
  }
  if (wanted == 0 || available.empty()) return dealt;
  size_t next = 0;
  for (size_t task = 0; task < limits.size(); ++task) {
    if (limits[task] == 0) continue;
    for (size_t i = CoresWanted(limits[task], available.size()); i > 0; --i) {
      dealt[task].push_back(available[next++ % available.size()]);
    }
    std::sort(dealt[task].begin(), dealt[task].end());
  }
  const size_t taken = wanted < available.size() ? wanted : 0;
  const std::vector<int> rest(available.begin() + static_cast<ptrdiff_t>(taken), available.end());
  for (size_t task = 0; task < limits.size(); ++task) {
    if (limits[task] == 0) dealt[task] = rest;
  }
  return dealt;
}

std::string PrintCpus(const std::vector<int>& cpus) {
  std::string text;
  for (size_t begin = 0; begin < cpus.size();) {
    size_t end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += StrCat(begin == 0 ? "" : ",", cpus[begin]);
    if (end - begin > 1) text += StrCat("-", cpus[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace muster::process
