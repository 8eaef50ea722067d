#include "muster/launch/kubernetes/place/pod_log.h"

#include <algorithm>
#include <utility>

#include "muster/net/http/message.h"
#include "muster/process/deadline.h"

namespace muster::launch::kubernetes {
namespace {

using std::chrono::steady_clock;
using Phase = job::TaskObservation::Phase;

constexpr double kLookSeconds = 0.2;  // between two looks at a pod that has nothing to read
constexpr double kFetchSeconds = 30;  // for what is there already
constexpr double kTailSeconds = 5;    // from a container's end to that of its log
constexpr auto kPause = std::chrono::milliseconds(500);  // from a stream's end to the next one

}  // namespace

absl::StatusOr<control::LogPiece> PodLogSource::Read(int64_t offset, size_t max, double wait) {
  if (offset == last_offset_ && offset != next_) {  // once more
    unread_.insert(0, last_.bytes);
    gap_ = last_.gap;
    begins_run_ = last_.begins_run;
    next_ = last_offset_;
  }
  if (offset != next_) {
    return absl::OutOfRangeError(
        StrCat("read the log of ", pod_, " at offset ", offset, ", which was never returned"));
  }
  if (unread_.empty()) MUSTER_RETURN_IF_ERROR(Fill(wait));
  control::LogPiece piece{.bytes = unread_.substr(0, max), .next = offset, .gap = false};
  if (piece.bytes.empty()) return piece;
  piece.gap = std::exchange(gap_, false);
  piece.begins_run = std::exchange(begins_run_, false);
  unread_.erase(0, piece.bytes.size());
  piece.next += static_cast<int64_t>(piece.bytes.size());
  last_offset_ = offset;
  next_ = piece.next;
  last_ = piece;
  return piece;
}

// Reads until there is something, or the time is over.
absl::Status PodLogSource::Fill(double wait) {
  const auto deadline = process::Deadline::After(wait);
  while (unread_.empty()) {
    if (stream_ == nullptr) MUSTER_RETURN_IF_ERROR(LookAtPod());
    const double left = static_cast<double>(deadline.PollMillis()) / 1000;
    if (stream_ == nullptr) {
      if (deadline.expired()) return absl::OkStatus();
      process::PollReadable(nullptr, 0, process::Deadline::After(std::min(left, kLookSeconds)));
      continue;
    }
    MUSTER_RETURN_IF_ERROR(TakeNews(left));
    // What is there already, or is the last of an ended container, is read whatever `wait` says.
    if (stream_ != nullptr && follows_ && !has_ended_ && deadline.expired()) {
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// Opens the log of the task's pod, if there is one with anything new.
absl::Status PodLogSource::LookAtPod() {
  MUSTER_ASSIGN_OR_RETURN(const auto pod, lookup_.FindPod(task_));
  if (!pod) {
    const auto loss = run_ ? std::nullopt : lookup_.DescribeLoss(task_);
    if (!loss) return absl::OkStatus();
    return absl::NotFoundError(StrCat("the pod ", name_space_, "/", pod_,
                                      " does not exist any more, and its output with it: ", *loss));
  }
  const Run run{.uid = pod->record.uid,
                .container = pod->container,
                .restarts = pod->record.restarts_in_place};
  if (run_ != run) {
    const bool was_read = run_ && known_ > 0;
    gap_ = gap_ || (was_read && !complete_ && !closed_);
    begins_run_ = begins_run_ || was_read;
    run_ = run;
    known_ = 0;
    head_.clear();
    is_fetched_ = complete_ = closed_ = false;
    not_before_ = {};
  }
  has_ended_ = pod->record.phase == Phase::kEnded;
  const bool has_begun = has_ended_ || pod->record.phase == Phase::kRunning;
  const bool must_wait = !has_ended_ && steady_clock::now() < not_before_;
  if (complete_ || !has_begun || must_wait) return absl::OkStatus();
  follows_ = is_fetched_ && !has_ended_;
  const std::string query =
      StrCat("container=", net::EscapeForTarget(run_->container), follows_ ? "&follow=true" : "");
  MUSTER_ASSIGN_OR_RETURN(
      stream_, LogStream::Start(access_, GetTarget(kPods, name_space_, pod_, "log"), query,
                                LogSkip(known_, head_), notice_));
  return absl::OkStatus();
}

void PodLogSource::SeeWhetherItEnded() {
  const auto pod = lookup_.FindPod(task_);
  if (!pod.ok()) return;
  has_ended_ = !*pod || (*pod)->record.uid != run_->uid ||
               (*pod)->record.restarts_in_place != run_->restarts ||
               (*pod)->record.phase == Phase::kEnded;
}

absl::Status PodLogSource::TakeNews(double wait) {
  if (follows_ && !has_ended_ && wait <= 0) SeeWhetherItEnded();
  const double patience = !follows_ ? kFetchSeconds : has_ended_ ? kTailSeconds : wait;
  const LogStream::News news = stream_->Take(patience);
  if (news.is_other) {
    gap_ = true;
    known_ = 0;
    head_.clear();
  }
  if (head_.size() < LogSkip::kHeadBytes) {
    head_ += news.bytes.substr(0, LogSkip::kHeadBytes - head_.size());
  }
  known_ += static_cast<int64_t>(news.bytes.size());
  unread_ += news.bytes;
  if (news.done) return Close(news);
  if (!news.bytes.empty() || (follows_ && !has_ended_)) return absl::OkStatus();
  stream_.reset();  // it does not end, although the container has
  complete_ = follows_;
  return follows_ ? absl::OkStatus()
                  : absl::UnavailableError(StrCat("the log of ", pod_, " does not arrive"));
}

// Ends the stream, which has ended.
absl::Status PodLogSource::Close(const LogStream::News& news) {
  stream_.reset();
  if (news.status.ok()) {
    // A log that ended while its container was believed to run has a look at the pod follow, soon.
    if (follows_) not_before_ = steady_clock::now() + kPause;
    is_fetched_ = true;
    closed_ = follows_ || has_ended_;
    complete_ = has_ended_;
    return absl::OkStatus();
  }
  // It waits to start, or was deleted just now. After other errors the reader chooses when to ask
  // again.
  const bool is_early = absl::IsInvalidArgument(news.status) || absl::IsNotFound(news.status);
  if (is_early) {
    not_before_ = steady_clock::now() + kPause;
    complete_ = has_ended_;
  }
  return is_early || !unread_.empty() ? absl::OkStatus() : lookup_.Explain(news.status);
}

}  // namespace muster::launch::kubernetes
