// LogStream: the log of one container, read by a thread of its own while the container writes it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "muster/launch/kubernetes/api/kube_client.h"
#include "muster/process/descriptor.h"

namespace muster::launch::kubernetes {

// A descriptor that is readable from Notify() to Clear(). Any thread.
class LogNotice {
 public:
  LogNotice();
  void Notify() const;
  void Clear() const;
  int fd() const { return fd_.get(); }

 private:
  const process::Descriptor fd_;
};

// The part of a log that begins after what was read of it already. A kubelet counts no bytes, so
// the log is read from its beginning and what is known is left out, if it still begins as it did.
class LogSkip {
 public:
  // `known` bytes of the log were read before, of which `head` are the first.
  LogSkip(int64_t known, std::string head) : known_(known), head_(std::move(head)) {}
  // The next bytes of the log; returns those that are new.
  std::string Put(std::string_view bytes);
  // The log was rotated: what is returned begins with its oldest byte.
  bool is_other() const { return is_other_; }

  static constexpr size_t kHeadBytes = 512;

 private:
  int64_t known_;
  const std::string head_;
  std::string seen_ = {};  // until it is as long as the head
  bool is_checked_ = false, is_other_ = false;
};

class LogStream {
 public:
  // Begins to read GET `target`?`query`, by a client of its own.
  static absl::StatusOr<std::unique_ptr<LogStream>> Start(const KubeAccess& access,
                                                          std::string target, std::string query,
                                                          LogSkip skip,
                                                          std::shared_ptr<const LogNotice> notice);
  // Ends the call.
  ~LogStream();
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  struct News {
    std::string bytes = {};
    bool is_other = false;     // `bytes` begin another log, see LogSkip
    bool done = false;         // nothing follows `bytes`
    absl::Status status = {};  // of the call, once done
  };
  // Takes what has arrived; waits up to `seconds` for something.
  News Take(double seconds);

 private:
  LogStream(std::unique_ptr<KubeClient> client, std::string target, std::string query, LogSkip skip,
            std::shared_ptr<const LogNotice> notice);
  void Run();
  absl::Status Put(std::string_view bytes);

  const std::unique_ptr<KubeClient> client_;
  const std::string target_, query_;
  const std::shared_ptr<const LogNotice> notice_;
  LogSkip skip_;                // of the thread, as the next one
  bool is_other_told_ = false;  // once, for what follows is the same log
  std::mutex mutex_;
  std::condition_variable changed_;
  News news_;             // guarded by mutex_
  bool leaving_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace muster::launch::kubernetes
