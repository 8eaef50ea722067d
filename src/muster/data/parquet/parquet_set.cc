#include "muster/data/parquet/parquet_set.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/base/strings.h"
#include "muster/data/chunk_table.h"
#include "muster/data/parquet/parquet_source.h"

namespace muster::data {
namespace {

constexpr int kMaxNesting = 32;

// "dt=7/part-0.parquet" of "/a/dt=7/part-0.parquet": files in several folders have the same name.
std::string GetCommonName(const std::string& path) {
  std::string name = io::Basename(path);
  for (std::string folder = io::Dirname(path);; folder = io::Dirname(folder)) {
    const std::string part = io::Basename(folder);
    if (part.find('=') == std::string::npos) return name;
    name = StrCat(part, "/", name);
  }
}

RecordIndex MakeIndex(const std::vector<uint64_t>& groups, uint64_t bytes) {
  RecordIndex index;
  index.file_size = bytes;
  for (const uint64_t rows : groups) {
    index.chunks.push_back({.begin = index.end, .records = rows});
    index.end += rows;
  }
  return index;
}

// Makes the columns those of another file too: integers and floats are floats, other types that
// differ are text.
void Widen(const std::vector<KnownColumn>& of_file, std::vector<KnownColumn>* columns) {
  const auto is_number = [](const KnownColumn& column) {
    return column.type == formats::ValueType::kInt || column.type == formats::ValueType::kFloat;
  };
  for (const KnownColumn& other : of_file) {
    const auto known = std::ranges::find(*columns, other.name, &KnownColumn::name);
    if (known == columns->end()) {
      columns->push_back(other);
    } else if (!known->type || !other.type) {
      known->type = std::nullopt;
    } else if (known->type != other.type || known->is_date != other.is_date) {
      const bool are_numbers = is_number(*known) && is_number(other);
      known->type = are_numbers ? formats::ValueType::kFloat : formats::ValueType::kString;
      known->is_date = false;
    }
  }
}

class ParquetSet : public SourceSet {
 public:
  explicit ParquetSet(ParquetSettings settings)
      : settings_(std::move(settings)), lanes_(std::make_shared<ParquetLanes>(settings_.python)) {}

  absl::StatusOr<std::vector<SourceItem>> List(
      const std::vector<std::string>& patterns) const override {
    const std::shared_ptr<io::FileSystem> files = GetFiles();
    std::vector<SourceItem> items;
    for (const std::string& pattern : patterns) {
      MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, io::Glob(*files, pattern));
      for (const std::string& path : paths) {
        MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files->Stat(path));
        MUSTER_RETURN_IF_ERROR(Add(*files, path, info, 0, &items));
      }
    }
    return items;
  }

  // The rows before the cut are decoded in vain.
  absl::StatusOr<bool> CanBeCut(const SourceItem& /*item*/,
                                const formats::DataFormat& /*format*/) const override {
    return true;
  }

  absl::StatusOr<uint64_t> CountRecords(const SourceItem& item,
                                        const formats::DataFormat& /*format*/) const override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> groups, Describe(item.name));
    return MakeIndex(groups, item.size()).records();
  }

  absl::StatusOr<std::vector<KnownColumn>> DescribeColumns(
      const std::vector<std::string>& patterns) const override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<SourceItem> items, List(patterns));
    if (items.empty()) {
      return absl::NotFoundError(StrCat("no Parquet file in ", patterns.front()));
    }
    MUSTER_ASSIGN_OR_RETURN(auto lane, lanes_->Take());
    std::vector<KnownColumn> columns;
    for (const SourceItem& item : items) {
      MUSTER_ASSIGN_OR_RETURN(const auto of_file, lane->DescribeColumns(item.name));
      Widen(of_file, &columns);
    }
    lanes_->GiveBack(std::move(lane));
    return columns;
  }

  absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(
      const SourceSpec& spec, std::span<const Shard> shards, uint64_t) const override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<SourceItem> items, List(spec.patterns));
    std::map<size_t, IndexedItem> indexed;
    uint64_t rows = 0;
    bool takes_all = true;
    for (size_t i = 0; i < items.size(); ++i) {
      const bool is_needed = std::any_of(shards.begin(), shards.end(),
                                         [i](const Shard& shard) { return TakesItem(shard, i); });
      takes_all = takes_all && is_needed;
      if (!is_needed) continue;
      MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> groups, Describe(items[i].name));
      indexed[i] = {.name = items[i].name,
                    .identity = items[i].common_name,
                    .size = items[i].size(),
                    .index = MakeIndex(groups, items[i].size())};
      rows += indexed[i].index.records();
    }
    if (rows == 0 && takes_all && !spec.may_be_empty) {
      return absl::InvalidArgumentError(StrCat("no records in ", spec.patterns.front()));
    }
    std::vector<std::unique_ptr<RecordSource>> sources;
    for (const Shard& shard : shards) {
      std::vector<IndexedItem> taken;
      for (const auto& [i, item] : indexed) {
        if (TakesItem(shard, i)) taken.push_back(item);
      }
      sources.push_back(OpenShard(taken, shard, spec.first_number));
    }
    return sources;
  }

 private:
  std::shared_ptr<io::FileSystem> GetFiles() const {
    const MutexLock lock(&mutex_);
    if (files_ == nullptr) files_ = settings_.open_files();
    return files_;
  }

  static absl::Status Add(io::FileSystem& files, const std::string& path, const io::FileInfo& info,
                          int depth, std::vector<SourceItem>* items) {
    if (!info.is_folder) {
      items->push_back({.name = path,
                        .common_name = GetCommonName(path),
                        .end = info.size,
                        .modified_ns = info.modified_ns});
      return absl::OkStatus();
    }
    if (depth > kMaxNesting) {
      return absl::FailedPreconditionError(
          StrCat(path, ": folders are nested more than ", kMaxNesting, " deep"));
    }
    MUSTER_ASSIGN_OR_RETURN(const auto entries, files.ListEntries(path));
    for (const io::FolderEntry& entry : entries) {
      if (entry.name.starts_with('_') || entry.name.starts_with('.')) continue;
      MUSTER_RETURN_IF_ERROR(
          Add(files, io::JoinPath(path, entry.name), entry.info, depth + 1, items));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<uint64_t>> Describe(const std::string& path) const {
    MUSTER_ASSIGN_OR_RETURN(auto lane, lanes_->Take());
    auto groups = lane->Describe(path);
    if (groups.ok()) lanes_->GiveBack(std::move(lane));
    return groups;
  }

  std::unique_ptr<RecordSource> OpenShard(const std::vector<IndexedItem>& items, const Shard& shard,
                                          uint64_t first_number) const {
    ChunkTable table = MakeChunkTable(items, shard, first_number);
    std::vector<int> groups;
    for (ChunkInfo& chunk : table.chunks) {
      const std::vector<IndexedChunk>& all = items[static_cast<size_t>(chunk.file)].index.chunks;
      // Row groups without rows have no chunk and begin where the next one does.
      size_t group = 0;
      while (all[group].begin != chunk.begin || all[group].records == 0) ++group;
      groups.push_back(static_cast<int>(group));
      chunk.compressed = true;  // it comes in pieces
    }
    return std::make_unique<ParquetSource>(std::move(table), std::move(groups), lanes_);
  }

  const ParquetSettings settings_;
  const std::shared_ptr<ParquetLanes> lanes_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<io::FileSystem> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<const SourceSet> NewParquetSet(ParquetSettings settings) {
  return std::make_shared<ParquetSet>(std::move(settings));
}

}  // namespace muster::data
