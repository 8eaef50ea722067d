// RejectWriter: writes the records that were left out, one JSON object per line, so that they can
// be inspected, corrected and tried again: {"row":17,"where":"data.csv:19","error":"column 'age':
// 'x12' is not an int","record":"..."}; see docs/data.md. A record that is not UTF-8 text, such as
// a tf.Example, has "record_base64" instead; a record of a stream of batches has neither.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"

namespace muster::train {

// The file appears under its name when Close() has returned OK, even if it is empty. Until then it
// has a temporary name, and the destructor removes it. One owner thread.
class RejectWriter {
 public:
  // `files` must outlive the writer.
  static absl::StatusOr<std::unique_ptr<RejectWriter>> Create(io::FileSystem& files,
                                                              const std::string& path);
  ~RejectWriter();
  absl::Status Add(const data::BadRecord& record);
  absl::Status Close();

 private:
  RejectWriter(io::FileSystem& files, const std::string& path);

  io::FileSystem& files_;
  const std::string path_;
  const std::string temporary_;
  std::unique_ptr<io::WritableFile> file_;  // null after Close()
};

}  // namespace muster::train
