// LocalPlace: a job whose coordinator and folder are on this machine, as are its logs, wherever its
// tasks run (control/job_place.h). The coordinator is asked over HTTP; where none answers, the
// journal in the job's folder is read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/control/job_folder.h"
#include "muster/control/job_place.h"
#include "muster/control/local_log_source.h"
#include "muster/launch/local/local_job.h"

namespace muster::launch::local {

// Has the contract of LocalJob::Run().
using RunJob = std::function<absl::StatusOr<std::unique_ptr<LocalJob>>(
    const control::JobFolder& job, const std::string& binary, const std::string& cancelled)>;

struct LocalPlaceOptions {
  control::JobFolder folder = {};
  std::string program = {};  // the muster binary, for a job that Stop() has to close itself
  RunJob run = {};           // a job that Stop() closes; none: LocalJob::Run()
  // Starts the coordinator of a job that Resume() continues, in a process that outlives this one.
  std::function<absl::Status(const control::JobFolder&)> start = {};
  // Whether Stop() should no longer wait for the end of a job that it closes; called from time to
  // time and after each signal.
  std::function<bool()> interrupted = [] { return false; };
  // How long Stop() and Suspend() repeat their request while a coordinator is being started again.
  // The default is longer than a supervisor's longest pause.
  double patience_seconds = 20;
};

class LocalPlace : public control::JobPlace {
 public:
  explicit LocalPlace(LocalPlaceOptions options) : options_(std::move(options)) {}

  absl::StatusOr<formats::Json> Describe() override;
  // A job without a coordinator is closed in this process, which takes as long as its tasks need to
  // end. CANCELLED if `interrupted` returned true before that.
  absl::Status Stop(const std::string& why) override;
  absl::Status Suspend(bool suspended) override;
  absl::Status Resume() override;
  absl::StatusOr<std::string> Remove(bool with_work) override;
  absl::StatusOr<std::unique_ptr<control::LogSource>> OpenLog(job::TaskId task) override;
  bool WaitForEnd(double seconds) override;

 private:
  absl::StatusOr<formats::Json> State() const;
  absl::StatusOr<formats::Json> DescribeJournal(const absl::Status& silence) const;
  absl::StatusOr<formats::Json> Ask(const std::string& method, const std::string& path,
                                    const formats::Json& body);
  absl::Status AskPatiently(const std::string& path, const formats::Json& body);
  absl::Status EnterNetwork() const;
  absl::Status Close(const std::string& why) const;
  bool IsCaredFor() const;

  const LocalPlaceOptions options_;
  std::optional<job::JobSpec> spec_;                     // for OpenLog(); read once
  std::shared_ptr<const control::FolderNotice> notice_;  // of the logs; made with the first source
};

}  // namespace muster::launch::local
