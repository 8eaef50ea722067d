// Journal: a coordinator's state, written to disk before the coordinator acts on it.
//
// It is a record log (formats/record_log.h): the state is the first record with every later one
// merged into it (RFC 7396). docs/formats/journal.md describes the format.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/formats/record_log.h"
#include "muster/io/file_system.h"

namespace muster::control {

using formats::Json;

struct JournalState {
  Json state = Json::object();
  int64_t lines = 0;
  bool torn = false;  // a last line was dropped
};

// `name` is the file's name in messages.
absl::StatusOr<JournalState> ParseJournal(std::string_view bytes, const std::string& name);
absl::StatusOr<JournalState> ReadJournal(io::FileSystem& files, const std::string& path);

// The one writer of a journal (its owner holds the job's lock). One owner thread.
class Journal {
 public:
  // Reads the file if it exists. The first Append() rewrites it as one line, which drops a torn
  // last line and makes the file shorter.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(io::FileSystem& files, std::string path);

  const Json& state() const { return state_; }

  // Makes `state` durable; a state equal to state() is not written. After an error state() is
  // unchanged, and the next call rewrites the file. No member may be null.
  absl::Status Append(const Json& state);

 private:
  Journal(io::FileSystem& files, std::string path) : log_(files, std::move(path), {}) {}

  formats::RecordLog log_;
  Json state_ = Json::object();
  bool rewrite_ = true;  // the next Append() rewrites the file
};

}  // namespace muster::control
