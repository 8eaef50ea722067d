#include "muster/io/background_file.h"

#include <chrono>
#include <utility>

namespace muster::io {

BackgroundFile::BackgroundFile(std::unique_ptr<WritableFile> inner, double seconds)
    : inner_(std::move(inner)),
      seconds_(seconds),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

BackgroundFile::~BackgroundFile() = default;

void BackgroundFile::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    if (stop.stop_requested()) return;
    const std::string bytes = std::exchange(waiting_, {});
    is_sending_ = true;
    lock.unlock();
    absl::Status sent = inner_->Append(bytes);
    if (sent.ok()) sent = inner_->Flush();
    lock.lock();
    is_sending_ = false;
    status_.Update(sent);
    changed_.notify_all();
    if (!status_.ok()) return;
    changed_.wait_for(lock, stop, std::chrono::duration<double>(seconds_),
                      [this] { return hurries_ || waiting_.size() >= kMostWaiting; });
  }
}

absl::Status BackgroundFile::Append(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (is_closed_) return absl::FailedPreconditionError(StrCat(path(), ": the file is closed"));
  changed_.wait(lock, [this] { return !status_.ok() || waiting_.size() < kMostWaiting; });
  if (!status_.ok()) return status_;
  waiting_ += bytes;
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status BackgroundFile::Flush() { return Append({}); }

absl::Status BackgroundFile::Sync() {
  MUSTER_RETURN_IF_ERROR(Flush());
  std::unique_lock lock(mutex_);
  hurries_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !status_.ok() || (waiting_.empty() && !is_sending_); });
  hurries_ = false;
  return status_;
}

absl::Status BackgroundFile::Close() {
  const absl::Status synced = Sync();
  if (!synced.ok()) return synced;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  thread_.request_stop();
  thread_.join();
  return inner_->Close();
}

}  // namespace muster::io
