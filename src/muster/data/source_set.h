// SourceSet: the data of one kind, such as files or the partitions of a log, as one listing of
// names and ranges. Code that divides data, or compares it between tasks (shards, part plans, the
// agreement of a job), uses the listing and does not know what kind of data it is.
//
// The scheme of a pattern determines the set that serves it: SourceSpec::schemes is the table, and
// a pattern whose scheme is not in it names files. Files of columns have no scheme: they are found
// by their names and contents, and the table has their set as kParquetKind. A new kind of data
// implements SourceSet and RecordSource, and passes data/source_conformance.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"

namespace muster::data {

// A file or a partition: a replica gets it as a whole if data is divided by files.
struct SourceItem {
  enum class Kind { kFile, kPartition };

  Kind kind = Kind::kFile;
  std::string name = {};         // for messages: a file's path, or "topic/3"
  std::string common_name = {};  // the same on all machines: a file's name without its folder
  // Positions: 0 and a file's size in bytes; a partition's first offset and the offset after its
  // last, between which some may have no record.
  uint64_t begin = 0;
  uint64_t end = 0;
  int64_t modified_ns = 0;  // since the Unix epoch; 0: the data never changes
  // Distinguishes data with the same name and range, and is the same on all machines: the id of a
  // topic, which changes if the topic is removed and created again. "" for a file, which is
  // distinguished by its size and time.
  std::string identity = {};

  uint64_t size() const { return end - begin; }
  friend bool operator==(const SourceItem&, const SourceItem&) = default;
};

// What data says itself of a column.
struct KnownColumn {
  std::string name = {};
  // How its values can be read; none: in no way.
  std::optional<formats::ValueType> type = {};
  bool is_date = false;  // kString: dates or times, which an int with Field::date reads too
};

// Thread-safe.
class SourceSet {
 public:
  virtual ~SourceSet() = default;
  // Returns the items that the patterns name, in the order in which their records are read.
  // NOT_FOUND for a pattern without items.
  virtual absl::StatusOr<std::vector<SourceItem>> List(
      const std::vector<std::string>& patterns) const = 0;
  // Whether reading can begin in the middle of the item; false for a compressed file. `format` is
  // the data's, as in SourceSpec.
  virtual absl::StatusOr<bool> CanBeCut(const SourceItem& item,
                                        const formats::DataFormat& format) const = 0;
  // Returns the number of the item's records, or an upper bound if the number is not known.
  virtual absl::StatusOr<uint64_t> CountRecords(const SourceItem& item,
                                                const formats::DataFormat& format) const = 0;
  // Returns the columns of all items, each of a type that takes its values in all of them; none if
  // the data does not say itself which it has, so that they must be found in its records.
  virtual absl::StatusOr<std::vector<KnownColumn>> DescribeColumns(
      const std::vector<std::string>& /*patterns*/) const {
    return std::vector<KnownColumn>();
  }
  // Like data::OpenShards.
  virtual absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(
      const SourceSpec& spec, std::span<const Shard> shards, uint64_t max_bad_records) const = 0;
};

// Returns the set of files that io::Glob finds, in the formats that data/source.h names. `files`
// must outlive the set and everything that it opens.
std::unique_ptr<SourceSet> NewFileSet(io::FileSystem& files);

// The name in SourceSchemes of the set of Parquet files. It serves patterns that end in .parquet,
// and those whose first file, in a folder perhaps, has such a name, or no ending and the bytes PAR1
// at its beginning and end.
inline constexpr std::string_view kParquetKind = "parquet";

// Returns the set that serves `patterns`. INVALID_ARGUMENT if they belong to different sets.
absl::StatusOr<std::shared_ptr<const SourceSet>> ChooseSourceSet(
    io::FileSystem& files, const SourceSchemes& schemes, const std::vector<std::string>& patterns);

// Returns the items that the set for `spec` lists.
absl::StatusOr<std::vector<SourceItem>> ListSources(io::FileSystem& files, const SourceSpec& spec);

}  // namespace muster::data
