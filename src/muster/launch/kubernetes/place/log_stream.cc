#include "muster/launch/kubernetes/place/log_stream.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::launch::kubernetes {
namespace {

constexpr size_t kMaxUnread = size_t{16} << 20;  // the thread waits for its reader beyond this

}  // namespace

LogNotice::LogNotice() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void LogNotice::Notify() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
}

void LogNotice::Clear() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd_.get(), &count, sizeof count);
}

std::string LogSkip::Put(std::string_view bytes) {
  if (!is_checked_) {
    seen_ += bytes;
    if (seen_.size() < head_.size() && head_.starts_with(seen_)) return "";
    is_checked_ = true;
    is_other_ = !seen_.starts_with(head_);
    if (is_other_) known_ = 0;
    bytes = seen_;
  }
  const auto skipped =
      static_cast<size_t>(std::min<int64_t>(known_, static_cast<int64_t>(bytes.size())));
  known_ -= static_cast<int64_t>(skipped);
  return std::string(bytes.substr(skipped));
}

absl::StatusOr<std::unique_ptr<LogStream>> LogStream::Start(
    const KubeAccess& access, std::string target, std::string query, LogSkip skip,
    std::shared_ptr<const LogNotice> notice) {
  MUSTER_ASSIGN_OR_RETURN(auto client, KubeClient::New(access));
  return std::unique_ptr<LogStream>(new LogStream(
      std::move(client), std::move(target), std::move(query), std::move(skip), std::move(notice)));
}

LogStream::LogStream(std::unique_ptr<KubeClient> client, std::string target, std::string query,
                     LogSkip skip, std::shared_ptr<const LogNotice> notice)
    : client_(std::move(client)),
      target_(std::move(target)),
      query_(std::move(query)),
      notice_(std::move(notice)),
      skip_(std::move(skip)),
      thread_([this] { Run(); }) {}

LogStream::~LogStream() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  client_->Cancel();
  thread_.join();
}

void LogStream::Run() {
  absl::Status status =
      client_->Read(target_, query_, [this](std::string_view bytes) { return Put(bytes); });
  {
    const std::lock_guard lock(mutex_);
    news_.done = true;
    news_.status = std::move(status);
  }
  changed_.notify_all();
  notice_->Notify();
}

absl::Status LogStream::Put(std::string_view bytes) {
  const std::string fresh = skip_.Put(bytes);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return leaving_ || news_.bytes.size() < kMaxUnread; });
    if (leaving_) return absl::CancelledError("the log is not read any more");
    news_.bytes += fresh;
    news_.is_other = news_.is_other || (skip_.is_other() && !is_other_told_);
    is_other_told_ = skip_.is_other();
  }
  if (fresh.empty()) return absl::OkStatus();
  changed_.notify_all();
  notice_->Notify();
  return absl::OkStatus();
}

LogStream::News LogStream::Take(double seconds) {
  News taken;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [this] { return news_.done || !news_.bytes.empty(); });
    taken = news_;
    news_.bytes.clear();
    news_.is_other = false;
  }
  changed_.notify_all();
  return taken;
}

}  // namespace muster::launch::kubernetes
