// Numbers and durations as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

std::string FormatCount(double count);       // "12.3k"
std::string FormatDuration(double seconds);  // "1m 05s"
std::string GroupDigits(uint64_t number);    // "12,345"

}  // namespace muster
