// LogSource: what one task of a job wrote, wherever it is kept: files of this machine
// (local_log_source.h), or a service that answers requests. Each implementation passes
// log_source_conformance.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "muster/base/status.h"

namespace muster::control {

struct LogPiece {
  std::string bytes = {};
  // The offset to read from next. It is `offset + bytes.size()`, or more if the place counts bytes
  // that it no longer has.
  int64_t next = 0;
  // Output was lost between the previous piece and `bytes`: it was rotated away or truncated before
  // it was read.
  bool gap = false;
  // `bytes` are the first of another run of the task than the previous piece. Only a source that
  // keeps the output of each run apart says so.
  bool begins_run = false;
};

// A log is read forwards. One owner thread for all sources of one JobPlace.
class LogSource {
 public:
  virtual ~LogSource() = default;

  // Reads up to `max` bytes at `offset`, which is 0 (the oldest byte that is kept), the `next` of
  // the last piece, or the offset of the last piece again; any other offset is OUT_OF_RANGE. A
  // repeated read returns the same bytes, and possibly more.
  //
  // If there is nothing to read, Read waits up to `wait` seconds for more, and then returns an
  // empty piece. An empty piece does not mean that the log has ended: only the job's description
  // says that. A task that has not written anything yet has an empty log.
  //
  // UNAVAILABLE: the place did not answer within `wait`, or within its own minimum timeout. The
  // same read may be repeated, and nothing is lost by that. The source finds a place that has
  // moved.
  virtual absl::StatusOr<LogPiece> Read(int64_t offset, size_t max, double wait) = 0;

  // A descriptor that is readable, until ClearChange(), when there may be more to read; -1 if the
  // source has none and a reader must use Read's `wait`. Sources of one place may share it, so a
  // reader reads all of them after each change.
  virtual int change_fd() const { return -1; }
  virtual void ClearChange() {}
};

}  // namespace muster::control
