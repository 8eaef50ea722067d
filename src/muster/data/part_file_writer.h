// PartFileWriter: writes a set of TFRecord files part-00000-of-0000N.tfrecord[.gz|.zlib] with their
// indexes. The set appears at once: the files are written under temporary names and renamed when
// all are complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/record_index.h"
#include "muster/formats/compression.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/file_system.h"

namespace muster::data {

struct PartFilesSpec {
  std::string folder;  // created if it does not exist
  int files = 1;
  formats::Compression compression = formats::Compression::kNone;
  // Whether part files of another set (with another count or compression) in the folder are removed
  // when this set is complete; if not, they are an error. Files with the same names are always
  // replaced.
  bool overwrite = false;
};

constexpr int kMaxPartFiles = 1000;  // each part file stays open

std::string PartFileName(int index, int count, formats::Compression compression);

// One owner thread. A writer that is destroyed without Commit() removes everything it wrote.
class PartFileWriter {
 public:
  // ALREADY_EXISTS names a part file of another set. INVALID_ARGUMENT if the number of files is
  // less than 1 or more than kMaxPartFiles.
  static absl::StatusOr<std::unique_ptr<PartFileWriter>> Create(io::FileSystem& files,
                                                                const PartFilesSpec& spec);
  ~PartFileWriter();
  PartFileWriter(const PartFileWriter&) = delete;
  PartFileWriter& operator=(const PartFileWriter&) = delete;

  // Records are distributed round robin: the files' counts differ by one record at most.
  absl::Status Write(std::string_view record);
  // Closes, renames and indexes all files. After an error, none of the set is left.
  absl::Status Commit();

  // The final names, in order.
  std::vector<std::string> paths() const;
  // The number of bytes on disk, known after Commit().
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Part {
    std::string path;
    std::unique_ptr<formats::TfRecordWriter> writer;
    RecordIndexBuilder index;
    uint64_t end = 0;
  };

  PartFileWriter(io::FileSystem& files, const PartFilesSpec& spec) : files_(files), spec_(spec) {}
  absl::Status Open();
  absl::Status FindOtherFiles();
  absl::Status Publish();

  io::FileSystem& files_;
  const PartFilesSpec spec_;
  std::vector<Part> parts_;
  std::vector<std::string> others_;  // names of another set's files
  size_t next_ = 0;
  uint64_t file_bytes_ = 0;
  bool committed_ = false;
};

}  // namespace muster::data
