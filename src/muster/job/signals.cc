#include "muster/job/signals.h"

#include <charconv>
#include <csignal>
#include <cstring>

#include "muster/base/strings.h"

namespace muster::job {

std::string SignalName(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? StrCat("signal ", signal) : StrCat("SIG", name);
}

int SignalNumber(std::string_view text) {
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) {
    return number > 0 && number < NSIG ? number : 0;
  }
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* const name = sigabbrev_np(signal);
    if (name != nullptr && (text == name || text == StrCat("SIG", name))) return signal;
  }
  return 0;
}

}  // namespace muster::job
