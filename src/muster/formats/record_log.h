// Record log: a file of JSON objects that one process appends to in groups; each group is made
// durable before the process acts on it. docs/formats/record_log.md describes the bytes.
//
// A crash during Append() leaves only the beginning of the group: its first records, then a line
// without its end, or with zeros where blocks never reached the disk. That torn end is dropped. Any
// other line that fails its check is damage: DATA_LOSS, with the line and its byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/io/file_system.h"

namespace muster::formats {

inline constexpr uint64_t kMaxRecordLogBytes = uint64_t{1} << 30;

struct RecordLogContents {
  std::vector<Json> records;
  uint64_t bytes = 0;  // of the records' lines, which are at the beginning of the file
  bool torn = false;   // the file has more bytes: a torn end
};

// `name` is the file's name in messages.
absl::StatusOr<RecordLogContents> ParseRecordLog(std::string_view bytes, const std::string& name);
// NOT_FOUND if there is no such file; RESOURCE_EXHAUSTED over kMaxRecordLogBytes.
absl::StatusOr<RecordLogContents> ReadRecordLog(io::FileSystem& files, const std::string& path);

// The only writer of a log (its owner holds a lock or a lease). One owner thread.
class RecordLog {
 public:
  // Continues the log whose contents `read` were just read; {} begins a new log in place of any
  // file. Nothing is written before the first Append() or Replace(). `files` must outlive the log.
  RecordLog(io::FileSystem& files, std::string path, const RecordLogContents& read);
  ~RecordLog();

  // Makes the records durable, in their order, with one sync. The cost depends on their bytes, not
  // on the length of the log. After an error none of them counts as written, although a reader may
  // find the first ones until the next Append() or Replace(), which removes them first.
  // INVALID_ARGUMENT for a record that is not an object or nests deeper than 32, RESOURCE_EXHAUSTED
  // for a log that would become longer than kMaxRecordLogBytes: nothing is written then.
  absl::Status Append(std::span<const Json> records);
  // Replaces all records by these, which are written under another name and renamed: a reader finds
  // either the old or the new ones.
  absl::Status Replace(std::span<const Json> records);

  uint64_t bytes() const { return bytes_; }  // of all records

 private:
  absl::Status OpenAtEnd();
  absl::Status Write(std::string_view contents);

  io::FileSystem& files_;
  const std::string path_;
  std::unique_ptr<io::WritableFile> file_;  // null: must be opened
  uint64_t bytes_;
  bool has_sound_end_;  // the file exists and has no bytes after bytes_
};

}  // namespace muster::formats
