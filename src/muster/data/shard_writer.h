// ShardWriter: writes a set of TFRecord files part-00000-of-0000N.tfrecord[.gz|.zlib] with their
// indexes. The set appears as a whole: it is written under temporary names and renamed when
// complete.
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

struct ShardSetSpec {
  std::string folder;  // created if it does not exist
  int shards = 1;
  formats::Compression compression = formats::Compression::kNone;
  // Whether shards of another set (with another count or compression) in the folder are removed
  // when this one is complete; otherwise they are an error. Shards of the same names are always
  // replaced.
  bool overwrite = false;
};

constexpr int kMaxShards = 1000;  // each is an open file

std::string ShardName(int index, int count, formats::Compression compression);

// One owner thread. A writer that is destroyed without Commit() removes what it wrote.
class ShardWriter {
 public:
  // ALREADY_EXISTS names a shard of another set.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(io::FileSystem& files,
                                                             const ShardSetSpec& spec);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Records are distributed round robin: shards differ by one record at most.
  absl::Status Write(std::string_view record);
  // Closes, renames and indexes all shards. After an error, none of the set is left.
  absl::Status Commit();

  // Final names, in order.
  std::vector<std::string> paths() const;
  // Bytes on disk, known after Commit().
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Part {
    std::string path;
    std::unique_ptr<formats::TfRecordWriter> writer;
    RecordIndexBuilder index;
    uint64_t end = 0;
  };

  ShardWriter(io::FileSystem& files, const ShardSetSpec& spec) : files_(files), spec_(spec) {}
  absl::Status Open();
  absl::Status FindOtherShards();
  absl::Status Publish();

  io::FileSystem& files_;
  const ShardSetSpec spec_;
  std::vector<Part> parts_;
  std::vector<std::string> others_;  // names of another set's files
  size_t next_ = 0;
  uint64_t file_bytes_ = 0;
  bool committed_ = false;
};

}  // namespace muster::data
