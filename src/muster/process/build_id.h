// The identity of the running program: the build id that the linker gave it.
#pragma once

#include <string>

namespace muster::process {

// Returns the program's build id (the ELF note NT_GNU_BUILD_ID) as hexadecimal digits: two programs
// with the same one were linked from the same code. "" if the linker gave it none.
std::string GetBuildId();

}  // namespace muster::process
