#include "muster/cli/jobs/status_watcher.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/base/terminal.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_printer.h"

namespace muster::cli {
namespace {

using formats::Json;

constexpr double kRedrawSeconds = 1;
constexpr char kHomeAndClear[] = "\033[H\033[2J";

void Redraw(const Json& job) {
  // A row that is wider than the terminal would move the others.
  const size_t width = TerminalWidth(STDOUT_FILENO);
  std::string text = kHomeAndClear;
  const std::string shown = StrCat(JobTable(job), FailureText(job), HangText(job));
  for (const absl::string_view line : absl::StrSplit(shown, '\n', absl::SkipEmpty())) {
    text += FitColumns(ToStd(line), width - 1) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

class ChangePrinter {
 public:
  void Print(const Json& job) {
    for (const auto& [who, line] : StateLines(job)) {
      std::string& last = last_[who];
      if (last != line) std::printf("%s\n", line.c_str());
      last = line;
    }
  }

 private:
  std::map<std::string, std::string> last_;
};

}  // namespace

absl::Status WatchStatus(control::JobPlace& place) {
  const InterruptScope interrupt;
  const bool is_terminal = CanRewrite(STDOUT_FILENO);
  ChangePrinter changes;
  while (true) {
    // asked before the place is described, as it may change then
    const bool may_change = !place.WaitForEnd(0);
    const absl::StatusOr<Json> job = place.Describe();
    if (absl::IsUnavailable(job.status()) && may_change && !InterruptScope::requested()) {
      place.WaitForEnd(kRedrawSeconds);  // the place may answer again
      continue;
    }
    MUSTER_RETURN_IF_ERROR(job.status());
    if (is_terminal) {
      Redraw(*job);
    } else {
      changes.Print(*job);
    }
    std::fflush(stdout);
    const bool is_over = HasEnded(*job) || !may_change || InterruptScope::requested();
    if (is_over && !is_terminal) {
      std::fputs(StrCat(FailureText(*job), HangText(*job)).c_str(), stdout);
    }
    if (is_over) return absl::OkStatus();
    place.WaitForEnd(kRedrawSeconds);
  }
}

}  // namespace muster::cli
