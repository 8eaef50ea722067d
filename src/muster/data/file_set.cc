#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/data/chunk_table.h"
#include "muster/data/file_source.h"
#include "muster/data/source_set.h"
#include "muster/formats/tfrecord.h"

namespace muster::data {
namespace {

class FileSet : public SourceSet {
 public:
  explicit FileSet(io::FileSystem& files) : files_(files) {}

  absl::StatusOr<std::vector<SourceItem>> List(
      const std::vector<std::string>& patterns) const override {
    std::vector<SourceItem> items;
    for (const std::string& pattern : patterns) {
      MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, io::Glob(files_, pattern));
      for (const std::string& path : paths) {
        MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files_.Stat(path));
        if (info.is_folder) {
          return absl::InvalidArgumentError(
              StrCat(path, ": is a folder; to read its files write '", path, "/*'"));
        }
        items.push_back({.name = path,
                         .common_name = io::Basename(path),
                         .end = info.size,
                         .modified_ns = info.modified_ns});
      }
    }
    return items;
  }

  absl::StatusOr<bool> CanBeCut(const SourceItem& item) const override {
    if (item.name.ends_with(".gz")) return false;
    if (FormatOfName(item.name) != FileFormat::kTfRecord) return true;
    MUSTER_ASSIGN_OR_RETURN(const auto opened, files_.OpenForRead(item.name));
    MUSTER_ASSIGN_OR_RETURN(const auto compression, formats::DetectCompression(*opened));
    return compression == formats::Compression::kNone;
  }

  absl::StatusOr<uint64_t> CountRecords(const SourceItem& item) const override {
    MUSTER_ASSIGN_OR_RETURN(const RecordIndex index, LoadOrScanRecords(files_, item.name));
    return index.records();
  }

  absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(
      const SourceSpec& spec, std::span<const Shard> shards,
      uint64_t max_bad_records) const override {
    MUSTER_RETURN_IF_ERROR(formats::CheckCsvOptions(spec.csv));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<SourceItem> items, List(spec.patterns));
    MUSTER_RETURN_IF_ERROR(CheckFormats(items));
    const FileFormat format = FormatOfName(items[0].name);
    MUSTER_ASSIGN_OR_RETURN(const auto indexed, IndexItems(spec, items, shards));
    std::vector<std::unique_ptr<RecordSource>> sources;
    SourceSpec own = spec;
    for (const Shard& shard : shards) {
      own.shard = shard;
      std::vector<IndexedItem> taken;
      for (const auto& [i, item] : indexed) {
        if (TakesItem(shard, i)) taken.push_back(item);
      }
      if (format == FileFormat::kTfRecord) {
        sources.push_back(NewTfRecordSource(files_, taken, own, max_bad_records));
        continue;
      }
      MUSTER_ASSIGN_OR_RETURN(sources.emplace_back(),
                              NewTextSource(files_, format, taken, own, max_bad_records));
    }
    return sources;
  }

 private:
  static absl::Status CheckFormats(const std::vector<SourceItem>& items) {
    if (items.empty()) return absl::InvalidArgumentError("no input files were given");
    for (const SourceItem& item : items) {
      if (FormatOfName(item.name) == FormatOfName(items[0].name)) continue;
      return absl::InvalidArgumentError(
          StrCat("files of two formats cannot be mixed: ", items[0].name, " and ", item.name));
    }
    return absl::OkStatus();
  }

  // The files that the shards take, by their place in `items`.
  absl::StatusOr<std::map<size_t, IndexedItem>> IndexItems(const SourceSpec& spec,
                                                           const std::vector<SourceItem>& items,
                                                           std::span<const Shard> shards) const {
    std::map<size_t, IndexedItem> indexed;
    uint64_t records = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      const bool needed = std::any_of(shards.begin(), shards.end(),
                                      [i](const Shard& shard) { return TakesItem(shard, i); });
      if (!needed) continue;
      IndexedItem& item = indexed[i];
      item = {.name = items[i].name, .identity = items[i].common_name};
      MUSTER_ASSIGN_OR_RETURN(item.index, LoadOrScanRecords(files_, item.name, spec.csv));
      item.size = item.index.file_size;
      records += item.index.records();
    }
    // Where each file is one shard's, another may have them all.
    const bool whole = shards.empty() || shards.front().count == std::ssize(shards) ||
                       shards.front().by == ShardBy::kRecord;
    if (records > 0 || !whole || spec.may_be_empty) return indexed;
    return absl::InvalidArgumentError(StrCat(
        "no records in ", absl::StrJoin(items, ", ", [](std::string* text, const SourceItem& item) {
          text->append(item.name);
        })));
  }

  io::FileSystem& files_;
};

}  // namespace

std::unique_ptr<SourceSet> NewFileSet(io::FileSystem& files) {
  return std::make_unique<FileSet>(files);
}

}  // namespace muster::data
