#include "muster/launch/yarn/container_log.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "muster/base/strings.h"
#include "muster/net/http/exchange.h"
#include "muster/process/deadline.h"

namespace muster::launch::yarn {
namespace {

constexpr auto kLook = std::chrono::milliseconds(500);  // between two looks
constexpr int kWaitMillis = 200;
constexpr double kFetchSeconds = 30;
constexpr double kAggregationSeconds = 15;
constexpr int64_t kTailBytes = 64 << 10;           // of one look
constexpr int64_t kMostBytes = int64_t{64} << 20;  // of an output that was not read for long
constexpr size_t kFrameBytes = 64 << 10;           // the answer's head and foot are shorter

// The last `wanted` bytes of a container's output. NOT_FOUND if its NodeManager does not have it.
absl::StatusOr<LogTail> FetchTail(TicketCaller& caller, const ContainerInfo& container,
                                  int64_t wanted) {
  const std::string url = StrCat("http://", container.node);
  MUSTER_ASSIGN_OR_RETURN(const auto server, net::HttpExchange::Create({.url = url}));
  net::HttpCall call = {
      .method = "GET",
      .target = StrCat("/ws/v1/node/containers/", container.id, "/logs/stdout?size=-", wanted)};
  MUSTER_ASSIGN_OR_RETURN(
      const net::HttpAnswer answer,
      caller.Fetch(*server, url, std::move(call), static_cast<size_t>(wanted) + kFrameBytes,
                   {.total_seconds = kFetchSeconds}));
  if (answer.head.status == 200) return ParseLogTail(answer.body, wanted);
  // It redirects to a log server for a container that it has no files of any more.
  return absl::NotFoundError(
      StrCat("the NodeManager at ", container.node, " has no output of ", container.id));
}

}  // namespace

std::optional<ContainerInfo> ParseContainer(std::string_view place) {
  const size_t space = place.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  ContainerInfo info = {.node = std::string(place.substr(0, space)),
                        .id = std::string(place.substr(space + 1))};
  if (!info.id.starts_with("container_")) return std::nullopt;
  return info;
}

absl::StatusOr<LogTail> ParseLogTail(std::string_view answer, int64_t wanted) {
  constexpr std::string_view kLength = "\nLogLength:", kContents = "\nLogContents:\n";
  const size_t contents = answer.find(kContents);
  const size_t at = answer.substr(0, contents).find(kLength);
  LogTail tail;
  bool is_sound = contents != std::string_view::npos && at != std::string_view::npos;
  if (is_sound) {
    const char* const begin = answer.data() + at + kLength.size();
    const auto parsed = std::from_chars(begin, answer.data() + contents, tail.length);
    is_sound = parsed.ec == std::errc() && tail.length >= 0;
  }
  if (!is_sound) return absl::InvalidArgumentError("a NodeManager's answer is no log of Hadoop 3");
  answer.remove_prefix(contents + kContents.size());
  const auto size = static_cast<size_t>(std::min(wanted, tail.length));
  if (answer.size() < size) return absl::UnavailableError("a NodeManager's answer was cut off");
  tail.bytes = answer.substr(0, size);
  return tail;
}

// What the container has written since the last look.
absl::Status ContainerLog::Fetch() {
  MUSTER_ASSIGN_OR_RETURN(LogTail tail, FetchTail(caller_, *container_, kTailBytes));
  int64_t begin = tail.length - static_cast<int64_t>(tail.bytes.size());
  if (begin > known_) {
    const int64_t wanted = std::min(tail.length - known_ + kTailBytes, kMostBytes);
    MUSTER_ASSIGN_OR_RETURN(tail, FetchTail(caller_, *container_, wanted));
    begin = tail.length - static_cast<int64_t>(tail.bytes.size());
  }
  if (begin > known_) {
    gap_ = true;
    known_ = begin;
  }
  if (tail.length > known_) {
    unread_ += tail.bytes.substr(static_cast<size_t>(known_ - begin));
    known_ = tail.length;
  }
  return absl::OkStatus();
}

// What follows what was read, once YARN has aggregated it.
absl::Status ContainerLog::FetchKept() {
  const auto deadline = process::Deadline::After(kAggregationSeconds);
  bool is_aggregating = lookup_.IsAggregating();
  auto kept = lookup_.ReadKept(task_);
  while (is_aggregating || absl::IsUnavailable(kept.status())) {
    if (deadline.expired() || poll(nullptr, 0, kWaitMillis) < 0) break;
    is_aggregating = lookup_.IsAggregating();
    kept = lookup_.ReadKept(task_);
  }
  MUSTER_RETURN_IF_ERROR(kept.status());
  const int64_t read = container_ ? container_->incarnation : 0;
  for (const KeptOutput& output : *kept) {
    if (output.incarnation > read) {
      unread_ += output.bytes;
    } else if (output.incarnation == read && std::ssize(output.bytes) > known_) {
      unread_ += output.bytes.substr(static_cast<size_t>(known_));
    }
  }
  return absl::OkStatus();
}

absl::Status ContainerLog::Look(bool is_urgent) {
  const auto now = std::chrono::steady_clock::now();
  // What was written just before the job's end must be seen at once.
  const bool is_last = is_urgent && lookup_.HasEnded();
  if (complete_ || (now < not_before_ && !is_last)) return absl::OkStatus();
  not_before_ = now + kLook;
  MUSTER_ASSIGN_OR_RETURN(const auto container, lookup_.FindContainer(task_));
  if (container && container != container_) {
    if (container_) (void)Fetch();  // the rest of the last one, as far as it is there
    container_ = container;
    known_ = 0;
  }
  const bool has_ended = lookup_.HasEnded();
  absl::Status fetched = container_ ? Fetch() : absl::NotFoundError("it has no container");
  const bool is_elsewhere = absl::IsNotFound(fetched) || absl::IsUnavailable(fetched);
  // After the job's end, the container of a task's last incarnation may never have been seen, and a
  // NodeManager may be moving its output to HDFS.
  if (has_ended && (!container || is_elsewhere)) {
    const absl::Status kept = FetchKept();
    if (!fetched.ok() || !absl::IsNotFound(kept)) fetched = kept;
  }
  if (!has_ended && absl::IsNotFound(fetched)) fetched = absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(fetched);
  complete_ = has_ended;
  return absl::OkStatus();
}

absl::StatusOr<control::LogPiece> ContainerLog::Read(int64_t offset, size_t max, double wait) {
  if (offset == last_offset_ && offset != next_) {  // the last piece again
    unread_.insert(0, last_.bytes);
    gap_ = last_.gap;
  } else if (offset != next_) {
    return absl::OutOfRangeError(
        StrCat("the log of ", task_, " is at byte ", next_, ", not at ", offset));
  }
  const auto deadline = process::Deadline::After(wait);
  while (unread_.empty()) {
    MUSTER_RETURN_IF_ERROR(Look(wait <= 0));
    if (!unread_.empty() || deadline.expired()) break;
    if (poll(nullptr, 0, std::clamp(deadline.PollMillis(), 1, kWaitMillis)) < 0) break;  // a signal
  }
  last_offset_ = offset;
  last_ = {.bytes = unread_.substr(0, max), .gap = std::exchange(gap_, false)};
  unread_.erase(0, last_.bytes.size());
  next_ = last_.next = offset + static_cast<int64_t>(last_.bytes.size());
  return last_;
}

}  // namespace muster::launch::yarn
