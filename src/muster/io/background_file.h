// BackgroundFile: a file whose bytes a thread sends, for storage where sending takes long and each
// time costs a round of calls, such as HDFS. Its owner never waits for the storage while it
// appends.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::io {

// What is appended is sent and flushed together, at once if nothing was sent for `seconds`, or else
// when these are over. Flush() therefore does not wait: it returns the first error of the thread,
// as every call does. Sync() and Close() send the rest and wait for it. Append waits only while
// kMostWaiting bytes wait to be sent.
class BackgroundFile : public WritableFile {
 public:
  static constexpr size_t kMostWaiting = size_t{16} << 20;

  BackgroundFile(std::unique_ptr<WritableFile> inner, double seconds);
  // Drops what was not sent; waits for a sending in progress.
  ~BackgroundFile() override;
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;

  absl::Status Append(std::string_view bytes) override;
  absl::Status Flush() override;
  absl::Status Sync() override;
  absl::Status Close() override;
  const std::string& path() const override { return inner_->path(); }

 private:
  void Run(const std::stop_token& stop);

  const std::unique_ptr<WritableFile> inner_;  // the thread's, until it has ended
  const double seconds_;
  std::mutex mutex_;  // of what follows
  std::condition_variable_any changed_;
  std::string waiting_;
  absl::Status status_;
  bool is_sending_ = false, hurries_ = false, is_closed_ = false;
  std::jthread thread_;
};

}  // namespace muster::io
