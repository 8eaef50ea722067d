#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "muster/cli/cli.h"

namespace {

constexpr int kFewestArenas = 4;

// Memory that a thread frees stays in the arena that it took it from. A training has many threads,
// which come and go: with as many arenas as glibc makes, 8 for each core, half of the memory of a
// replica was free and not used.
void LimitArenas() {
  if (std::getenv("MALLOC_ARENA_MAX") != nullptr) return;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  mallopt(M_ARENA_MAX, std::max(cores, kFewestArenas));
}

}  // namespace

int main(int argc, char** argv) {
  LimitArenas();
  return muster::cli::Main(argc, argv);
}
