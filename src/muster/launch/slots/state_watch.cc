#include "muster/launch/slots/state_watch.h"

#include <chrono>
#include <utility>

#include "muster/base/strings.h"
#include "muster/job/job_spec.h"

namespace muster::launch::slots {

StateWatch::StateWatch(StateWatchOptions options, io::FileSystem& files, const Clock& clock)
    : options_(std::move(options)),
      files_(files),
      clock_(clock),
      seen_at_(now()),
      loop_([this](const std::stop_token& stop) { Loop(stop); }) {}

StateWatch::~StateWatch() { loop_.request_stop(); }

void StateWatch::Loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const double began_at = now();
    const absl::Status looked = files_.Stat(options_.journal).status();
    std::unique_lock lock(mutex_);
    if (looked.ok()) seen_at_ = began_at;
    if (absl::IsNotFound(looked)) gone_ = true;
    error_ = std::string(ToStd(looked.message()));
    pause_.wait_for(lock, stop, std::chrono::duration<double>(options_.look_seconds),
                    [] { return false; });
  }
}

absl::Status StateWatch::status() {
  const std::lock_guard lock(mutex_);
  if (gone_) {
    return absl::AbortedError(
        StrCat(options_.journal, " is gone: another attempt has the job, or it was removed"));
  }
  if (now() - seen_at_ < options_.patience_seconds) return absl::OkStatus();
  return absl::AbortedError(
      StrCat(options_.journal, " was not seen for ", job::PrintDuration(options_.patience_seconds),
             ": another attempt may have the job", error_.empty() ? "" : ": ", error_));
}

}  // namespace muster::launch::slots
