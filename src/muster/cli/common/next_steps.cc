#include "muster/cli/common/next_steps.h"

#include <unistd.h>

#include <cstdio>

namespace muster::cli {

void SayNextSteps(const std::vector<std::string>& commands) {
  if (isatty(STDOUT_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return;
  std::fflush(stdout);
  const char* before = "Next: ";
  for (const std::string& command : commands) {
    std::fprintf(stderr, "%s%s\n", before, command.c_str());
    before = "      ";
  }
}

}  // namespace muster::cli
