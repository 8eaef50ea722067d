// SourceSet: the data of one kind, such as files or the partitions of a log, with one listing of
// names and ranges. Code that divides data or compares it between tasks (shards, part plans, the
// agreement of a job) uses the listing and does not know what kind of data it is.
//
// Which set serves a pattern is chosen by the pattern's scheme: SourceSpec::schemes is the table,
// and a pattern whose scheme is not in it names files. A new kind implements SourceSet and
// RecordSource, and passes data/source_conformance.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"

namespace muster::data {

// A file or a partition: what is given to a replica whole if data is divided by files.
struct SourceItem {
  enum class Kind { kFile, kPartition };

  Kind kind = Kind::kFile;
  std::string name = {};         // in messages: the path of a file, "topic/3"
  std::string common_name = {};  // the same on all machines: a file's name without its folder
  // Positions: 0 and the size in bytes of a file; a partition's first offset and the offset after
  // its last, between which some may have no record.
  uint64_t begin = 0;
  uint64_t end = 0;
  int64_t modified_ns = 0;  // since the Unix epoch; 0: what was once written never changes
  // What distinguishes data with the same name and range, and is the same on all machines: the id
  // of a topic, which changes if the topic is removed and made again. "" for a file, which is
  // distinguished by its size and time.
  std::string identity = {};

  uint64_t size() const { return end - begin; }
  friend bool operator==(const SourceItem&, const SourceItem&) = default;
};

// Thread-safe.
class SourceSet {
 public:
  virtual ~SourceSet() = default;
  // The items that the patterns name, in the order in which their records are read. NOT_FOUND for a
  // pattern without items.
  virtual absl::StatusOr<std::vector<SourceItem>> List(
      const std::vector<std::string>& patterns) const = 0;
  // Whether reading can begin in the middle of the item: not in a compressed file. `format` is
  // that of the data, as in SourceSpec.
  virtual absl::StatusOr<bool> CanBeCut(const SourceItem& item,
                                        const formats::DataFormat& format) const = 0;
  // The number of the item's records; an upper bound if it is not known.
  virtual absl::StatusOr<uint64_t> CountRecords(const SourceItem& item,
                                                const formats::DataFormat& format) const = 0;
  // Like data::OpenShards.
  virtual absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(
      const SourceSpec& spec, std::span<const Shard> shards, uint64_t max_bad_records) const = 0;
};

// The files that io::Glob finds (data/source.h says which formats). `files` must outlive the set
// and what it opens.
std::unique_ptr<SourceSet> NewFileSet(io::FileSystem& files);

// The set that serves `patterns`. INVALID_ARGUMENT if they belong to different ones.
absl::StatusOr<std::shared_ptr<const SourceSet>> ChooseSourceSet(
    io::FileSystem& files, const SourceSchemes& schemes, const std::vector<std::string>& patterns);

// The items that the chosen set lists.
absl::StatusOr<std::vector<SourceItem>> ListSources(io::FileSystem& files, const SourceSpec& spec);

}  // namespace muster::data
