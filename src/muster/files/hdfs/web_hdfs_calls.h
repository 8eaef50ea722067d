// What the two halves of WebHdfs share: web_hdfs.cc (NameNodes) and web_hdfs_data.cc (DataNodes).
#pragma once

#include <chrono>
#include <string>

#include "muster/files/hdfs/web_hdfs.h"

namespace muster::files {

constexpr size_t kMaxTextBytes = size_t{256} << 20;  // the list of a folder of a million files

inline std::string What(const WebHdfsCall& call) { return StrCat(call.op, " ", call.path); }

inline bool IsOfTransport(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// How a call says who sends it. Empty: by the name of options_.user.
struct WebHdfs::Proof {
  std::string token = {};
  std::string authorization = {};  // the field's value
};

struct WebHdfs::Answer {
  absl::StatusOr<net::HttpAnswerHead> head = absl::UnknownError("not sent");
  std::string text = {};
  bool has_data = false;  // which went to the sink
  WebHdfsVerdict verdict = {};
};

// How long a call is repeated. One owner thread.
class WebHdfs::Patience {
 public:
  explicit Patience(const WebHdfs& owner) : owner_(owner) {}

  // Waits before the next sending, but not before the first that goes to another server. `why` the
  // one before failed is told to a person who waits. Returns false if the time is over.
  bool Wait(const absl::Status& why);

 private:
  void Note(const absl::Status& why, double seconds_left);

  const WebHdfs& owner_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double pause_ = 0.2;  // seconds
  size_t attempts_ = 0;
  bool noted_ = false;
};

}  // namespace muster::files
