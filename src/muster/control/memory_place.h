// A place in memory, for tests of these interfaces and of the code that reads places: a test plays
// a job that runs elsewhere. For tests only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/control/job_place.h"

namespace muster::control {

// The job as the place has it. A test changes it and makes the place misbehave. One owner thread.
struct MemoryJob {
  struct Log {
    int64_t first = 0;       // the number of bytes that are no longer kept
    std::string bytes = {};  // the bytes that are still kept
    int truncated = 0;       // how often it was truncated
  };

  formats::Json description = {
      {"name", "j"}, {"phase", "active"}, {"tasks", formats::Json::array()}};
  bool runs = true;
  bool suspended = false;
  bool removed = false;
  std::vector<std::string> stops;  // reasons, in the order in which they came
  std::map<job::TaskId, Log> logs;

  bool silent = false;                 // no request is answered
  std::string address = "a:1";         // where requests are answered
  std::function<void()> on_wait = {};  // called once when a read waits, to play what happens then

  void AddTask(job::TaskId task) {
    description["tasks"].push_back({{"task", job::TaskName(task)}, {"phase", "running"}});
    logs[task];
  }
  void End(const char* phase) {
    description["phase"] = phase;
    runs = false;
  }
};

// A client knows one address and looks the job up again when nothing answers there.
class MemoryClient {
 public:
  explicit MemoryClient(MemoryJob* job) : job_(job), address_(job->address) {}
  absl::Status Ask() {
    if (job_->silent) return absl::UnavailableError(StrCat(address_, " does not answer for job j"));
    address_ = job_->address;
    return absl::OkStatus();
  }

 private:
  MemoryJob* const job_;
  std::string address_;
};

class MemoryLogSource : public LogSource {
 public:
  MemoryLogSource(MemoryJob* job, job::TaskId task) : job_(job), task_(task), client_(job) {}

  absl::StatusOr<LogPiece> Read(int64_t offset, size_t max, double wait) override {
    if (offset != last_ && offset != next_) {
      return absl::OutOfRangeError(StrCat("read the log at offset ", offset));
    }
    MUSTER_RETURN_IF_ERROR(client_.Ask());
    if (Here(offset).empty() && wait > 0 && job_->on_wait) {
      std::exchange(job_->on_wait, nullptr)();
    }
    const MemoryJob::Log& log = job_->logs.at(task_);
    LogPiece piece{.bytes = {}, .next = offset};
    const std::string rest = Here(offset);
    if (rest.empty()) return piece;
    piece.gap = log.truncated != truncated_ || offset - base_ < log.first;
    if (log.truncated != truncated_) base_ = offset;
    truncated_ = log.truncated;
    piece.bytes = rest.substr(0, max);
    last_ = offset;
    const int64_t begin = std::max(offset, base_ + log.first);
    next_ = piece.next = begin + static_cast<int64_t>(piece.bytes.size());
    return piece;
  }

 private:
  // The bytes that are kept, from `offset` on.
  std::string Here(int64_t offset) const {
    const MemoryJob::Log& log = job_->logs.at(task_);
    if (log.truncated != truncated_) return log.bytes;
    const int64_t at = std::max<int64_t>(offset - base_ - log.first, 0);
    return at >= static_cast<int64_t>(log.bytes.size()) ? ""
                                                        : log.bytes.substr(static_cast<size_t>(at));
  }

  MemoryJob* const job_;
  const job::TaskId task_;
  MemoryClient client_;
  int64_t base_ = 0;  // the offset of the log's first byte since it was last truncated
  int truncated_ = 0;
  int64_t last_ = 0, next_ = 0;
};

class MemoryPlace : public JobPlace {
 public:
  explicit MemoryPlace(MemoryJob* job) : job_(job), client_(job) {}

  absl::StatusOr<formats::Json> Describe() override {
    MUSTER_RETURN_IF_ERROR(client_.Ask());
    if (job_->removed) return absl::NotFoundError("there is no job j");
    return job_->description;
  }
  absl::Status Stop(const std::string& why) override {
    MUSTER_RETURN_IF_ERROR(client_.Ask());
    if (!job_->runs) return absl::OkStatus();
    job_->stops.push_back(why);
    job_->description["message"] = why;
    job_->End("failed");
    return absl::OkStatus();
  }
  absl::Status Suspend(bool suspended) override {
    MUSTER_RETURN_IF_ERROR(client_.Ask());
    if (!job_->runs) return absl::FailedPreconditionError("the job j has ended");
    job_->suspended = suspended;
    job_->description["phase"] = suspended ? "suspended" : "active";
    return absl::OkStatus();
  }
  absl::Status Resume() override {
    if (job_->runs && !job_->suspended) return absl::FailedPreconditionError("the job j runs");
    return Suspend(false);
  }
  absl::StatusOr<std::string> Remove(bool) override {
    MUSTER_RETURN_IF_ERROR(client_.Ask());
    if (job_->runs) return absl::FailedPreconditionError("the job j runs");
    job_->removed = true;
    return std::string();
  }
  absl::StatusOr<std::unique_ptr<LogSource>> OpenLog(job::TaskId task) override {
    if (!job_->logs.contains(task)) {
      return absl::NotFoundError(StrCat("the job j has no task ", job::TaskName(task)));
    }
    return std::make_unique<MemoryLogSource>(job_, task);
  }
  bool WaitForEnd(double) override { return !job_->runs; }

 private:
  MemoryJob* const job_;
  MemoryClient client_;
};

}  // namespace muster::control
