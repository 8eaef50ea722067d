// PodLogSource: a task's output, which the kubelet of its pod keeps (control/log_source.h). The
// kubelet has the output of a pod that exists, and of that the last megabytes. So the output of a
// pod is gone with it: what was not read before is a gap.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/control/log_source.h"
#include "muster/launch/kubernetes/place/job_description.h"
#include "muster/launch/kubernetes/place/log_stream.h"

namespace muster::launch::kubernetes {

// What is known of a job's pods. One owner thread.
class PodLookup {
 public:
  virtual ~PodLookup() = default;
  // The task's pod, as it was some seconds ago at most; none: it has none.
  virtual absl::StatusOr<std::optional<PodInfo>> FindPod(job::TaskId task) = 0;
  // Why a task that has ended has no pod any more, and what else is known of its output; nullopt if
  // it has not ended.
  virtual std::optional<std::string> DescribeLoss(job::TaskId task) const = 0;
  // The error of a call, with what to do.
  virtual absl::Status Explain(const absl::Status& status) const = 0;
};

class PodLogSource : public control::LogSource {
 public:
  // `lookup` must outlive the source. `pod`: the name of the task's pods.
  PodLogSource(job::TaskId task, std::string pod, std::string name_space, KubeAccess access,
               PodLookup& lookup, std::shared_ptr<const LogNotice> notice)
      : task_(task),
        pod_(std::move(pod)),
        name_space_(std::move(name_space)),
        access_(std::move(access)),
        lookup_(lookup),
        notice_(std::move(notice)) {}

  // NOT_FOUND if the task has ended, and its pod was deleted before anything of it was read.
  absl::StatusOr<control::LogPiece> Read(int64_t offset, size_t max, double wait) override;
  int change_fd() const override { return notice_->fd(); }
  void ClearChange() override { notice_->Clear(); }

 private:
  // The log of one container's run: its pod, and how often it was started in that pod.
  struct Run {
    std::string uid = {}, container = {};
    int restarts = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };

  absl::Status Fill(double wait);
  absl::Status LookAtPod();
  absl::Status Open(bool follow);
  absl::Status TakeNews(double wait);
  void SeeWhetherItEnded();
  absl::Status Close(const LogStream::News& news);

  const job::TaskId task_;
  const std::string pod_, name_space_;
  const KubeAccess access_;
  PodLookup& lookup_;
  const std::shared_ptr<const LogNotice> notice_;

  std::optional<Run> run_ = {};  // that is read, or was read last
  std::unique_ptr<LogStream> stream_ = {};
  bool follows_ = false;     // the stream ends with the container
  bool is_fetched_ = false;  // what there was at the first look at the run
  bool has_ended_ = false;   // the run
  bool complete_ = false;    // all of the ended run was read
  bool closed_ = false;      // the last stream of the run ended in order
  int64_t known_ = 0;        // bytes of the run that were read
  std::string head_ = {};    // the first of these
  std::chrono::steady_clock::time_point not_before_ = {};  // the next stream

  std::string unread_ = {};                // before it is returned
  bool gap_ = false, begins_run_ = false;  // of `unread_`
  control::LogPiece last_ = {};            // as it was returned, from `last_offset_` on
  int64_t last_offset_ = 0, next_ = 0;
};

}  // namespace muster::launch::kubernetes
