// ContainerLog: a task's output (control/log_source.h), which the NodeManager of its container has
// in a file (http://NODE/ws/v1/node/containers/CONTAINER/logs/stdout), also for a while after the
// container has ended; after the job's end YARN aggregates these files on HDFS. The outputs of a
// task's containers follow one another.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/log_source.h"
#include "muster/launch/yarn/aggregated_log.h"
#include "muster/launch/yarn/ticket_caller.h"

namespace muster::launch::yarn {

struct ContainerInfo {
  std::string node = {};    // of its NodeManager: HOST:PORT of HTTP
  std::string id = {};      // "container_1795224297403_0009_01_000002"
  int64_t incarnation = 0;  // of its task, that it runs
  friend bool operator==(const ContainerInfo&, const ContainerInfo&) = default;
};

// "HOST:PORT ID", as the ApplicationMaster tells where a slot is; without the incarnation. None:
// other text.
std::optional<ContainerInfo> ParseContainer(std::string_view place);

// A piece of a log file, from the answer of a NodeManager, which has a head and a foot for people.
struct LogTail {
  std::string bytes = {};  // the file's last ones
  int64_t length = 0;      // of the whole file
};
// `wanted`: how many bytes were asked for. INVALID_ARGUMENT for another answer.
absl::StatusOr<LogTail> ParseLogTail(std::string_view answer, int64_t wanted);

// What is known of a job's containers. One owner thread.
class ContainerLookup {
 public:
  virtual ~ContainerLookup() = default;
  // The container of the task's newest incarnation, as it was a second ago at most; none: it has
  // none yet, or it is not known (any more). A container that lived for less than a second may
  // never be known.
  virtual absl::StatusOr<std::optional<ContainerInfo>> FindContainer(const std::string& task) = 0;
  virtual bool HasEnded() const = 0;  // the job, when it was described last
  // Whether nodes still write the outputs of the job's containers to HDFS, or will; each writes a
  // file. Also if the ResourceManager does not answer.
  virtual bool IsAggregating() = 0;
  // What YARN has kept of the task's output after the job's end (aggregated_log.h).
  virtual absl::StatusOr<std::vector<KeptOutput>> ReadKept(const std::string& task) = 0;
};

class ContainerLog : public control::LogSource {
 public:
  // `lookup` must outlive the source.
  ContainerLog(std::string task, ContainerLookup& lookup)
      : task_(std::move(task)), lookup_(lookup) {}

  absl::StatusOr<control::LogPiece> Read(int64_t offset, size_t max, double wait) override;

 private:
  absl::Status Look(bool is_urgent);
  absl::Status Fetch();
  absl::Status FetchKept();

  const std::string task_;
  ContainerLookup& lookup_;
  TicketCaller caller_;
  std::optional<ContainerInfo> container_;  // that is read, or was read last
  int64_t known_ = 0;                       // bytes of its output that were read
  bool complete_ = false;                   // nothing follows
  std::string unread_;                      // before it is returned
  bool gap_ = false;                        // before unread_
  control::LogPiece last_ = {};             // as it was returned, from last_offset_ on
  int64_t last_offset_ = 0, next_ = 0;
  std::chrono::steady_clock::time_point not_before_ = {};  // the next look
};

}  // namespace muster::launch::yarn
