#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/data/chunk_table.h"
#include "muster/data/file_rules.h"
#include "muster/data/file_source.h"
#include "muster/data/source_set.h"

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
        if (info.is_folder) return FolderError(path);
        items.push_back({.name = path,
                         .common_name = io::Basename(path),
                         .end = info.size,
                         .modified_ns = info.modified_ns});
      }
    }
    return items;
  }

  absl::StatusOr<bool> CanBeCut(const SourceItem& item,
                                const formats::DataFormat& format) const override {
    MUSTER_ASSIGN_OR_RETURN(const FileRules rules, FindFileRules(files_, item.name, format));
    return rules.compression == formats::Compression::kNone;
  }

  absl::StatusOr<uint64_t> CountRecords(const SourceItem& item,
                                        const formats::DataFormat& format) const override {
    MUSTER_ASSIGN_OR_RETURN(const FileRules rules, FindFileRules(files_, item.name, format));
    MUSTER_ASSIGN_OR_RETURN(const RecordIndex index, LoadOrScanRecords(files_, item.name, rules));
    return index.records();
  }

  absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(
      const SourceSpec& spec, std::span<const Shard> shards,
      uint64_t max_bad_records) const override {
    MUSTER_RETURN_IF_ERROR(formats::CheckDataFormat(spec.format));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<SourceItem> items, List(spec.patterns));
    if (items.empty()) return absl::InvalidArgumentError("no input files were given");
    const std::vector<size_t> needed = FindNeeded(items, shards);
    MUSTER_ASSIGN_OR_RETURN(const SetRules rules, FindRules(items, needed, spec));
    MUSTER_ASSIGN_OR_RETURN(const auto indexed, IndexItems(spec, items, needed, rules, shards));
    const FileRules& first = rules.files.front();
    std::vector<std::unique_ptr<RecordSource>> sources;
    SourceSpec own = spec;
    for (const Shard& shard : shards) {
      own.shard = shard;
      std::vector<IndexedItem> taken;
      for (const auto& [i, item] : indexed) {
        if (TakesItem(shard, i)) taken.push_back(item);
      }
      if (first.format == FileFormat::kTfRecord) {
        sources.push_back(NewTfRecordSource(files_, taken, own, max_bad_records));
        continue;
      }
      MUSTER_ASSIGN_OR_RETURN(sources.emplace_back(),
                              NewTextSource(files_, first, taken, own, max_bad_records));
    }
    return sources;
  }

 private:
  // Returns the items that a shard takes. If it takes none, returns the first item, which shows the
  // format of the data.
  static std::vector<size_t> FindNeeded(const std::vector<SourceItem>& items,
                                        std::span<const Shard> shards) {
    std::vector<size_t> needed;
    for (size_t i = 0; i < items.size(); ++i) {
      const bool is_needed = std::any_of(shards.begin(), shards.end(),
                                         [i](const Shard& shard) { return TakesItem(shard, i); });
      if (is_needed) needed.push_back(i);
    }
    if (needed.empty()) needed.push_back(0);
    return needed;
  }

  absl::StatusOr<SetRules> FindRules(const std::vector<SourceItem>& items,
                                     const std::vector<size_t>& needed,
                                     const SourceSpec& spec) const {
    std::vector<std::string> paths;
    for (const size_t i : needed) paths.push_back(items[i].name);
    MUSTER_ASSIGN_OR_RETURN(SetRules rules, FindSetRules(files_, paths, spec.format));
    if (spec.note && !rules.note.empty()) spec.note(rules.note);
    return rules;
  }

  // Returns the files that the shards take, by their index in `items`.
  absl::StatusOr<std::map<size_t, IndexedItem>> IndexItems(const SourceSpec& spec,
                                                           const std::vector<SourceItem>& items,
                                                           const std::vector<size_t>& needed,
                                                           const SetRules& rules,
                                                           std::span<const Shard> shards) const {
    std::map<size_t, IndexedItem> indexed;
    uint64_t records = 0;
    for (size_t n = 0; n < needed.size(); ++n) {
      const SourceItem& found = items[needed[n]];
      IndexedItem& item = indexed[needed[n]];
      item = {.name = found.name, .identity = found.common_name};
      MUSTER_ASSIGN_OR_RETURN(item.index, LoadOrScanRecords(files_, item.name, rules.files[n]));
      item.size = item.index.file_size;
      records += item.index.records();
    }
    // If data is divided by files, another shard may have all the records.
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
