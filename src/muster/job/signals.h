// Signals by name, as people write them.
#pragma once

#include <string>
#include <string_view>

namespace muster::job {

// "SIGKILL", "KILL" or "9" is 9; 0 for text that is not a signal.
int SignalNumber(std::string_view text);
std::string SignalName(int signal);  // "SIGKILL"; "signal 40" for one without a name

}  // namespace muster::job
