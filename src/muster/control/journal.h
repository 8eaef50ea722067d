// Journal: a coordinator's state, written to disk before the coordinator acts on it.
//
// A file of lines, each "CHECKSUM JSON": eight hexadecimal digits, the CRC-32C of the JSON, a
// space, an object on one line. The state is the first object with every later one merged into it
// (RFC 7396). docs/formats/journal.md describes it.
//
// A last line without its end, or with zeros where blocks never reached the disk, is left by a
// crash during an Append() and is dropped. Any other line that fails its check is damage:
// DATA_LOSS, with the line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
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
  // Reads the file if it exists and rewrites it as one line, which drops a torn end and shortens
  // it.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(io::FileSystem& files, std::string path);
  ~Journal();

  const Json& state() const { return state_; }

  // Makes `state` durable; one equal to state() writes nothing. After an error state() is
  // unchanged, and the next call rewrites the file. No member may be null.
  absl::Status Append(const Json& state);

 private:
  Journal(io::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  absl::Status Rewrite(const Json& state);
  absl::Status AppendLine(const std::string& line);

  io::FileSystem& files_;
  const std::string path_;
  Json state_ = Json::object();
  std::unique_ptr<io::WritableFile> file_;  // null: to be rewritten
  uint64_t bytes_ = 0;
};

}  // namespace muster::control
