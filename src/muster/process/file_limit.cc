#include "muster/process/file_limit.h"

#include <sys/resource.h>

namespace muster::process {
namespace {

rlim_t found_limit = 0;  // the soft limit before RaiseFileLimit; 0: it was not raised

}  // namespace

void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  const rlim_t found = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) found_limit = found;
}

void RestoreFileLimit() {
  rlimit limit = {};
  if (found_limit == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = found_limit;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace muster::process
