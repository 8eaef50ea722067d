// Linked into muster_portable only: what libstdc++'s archive takes from a C library that is newer
// than those that the packages promise to run with.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() noexcept;

// glibc has it since 2.36; std::random_device is what calls it.
std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (getentropy(&number, sizeof(number)) != 0) std::abort();  // before Linux 3.17
  return number;
}
